"""What the page's overview takes while the log holds a million events: five providers, one behind.

Each request is a real one over HTTP, and comes later than a look is kept, so that
each asks Redis anew. ``page_history_ms`` and ``page_provider_ms`` are the other views of operators.
"""

import asyncio
import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import uvicorn
from filling import Filler, spread
from gauge import Figures, Size, medians
from memorybus.config.settings import Settings
from memorybus.health.metrics_server import Address
from memorybus.health.verdict import CACHE_SECONDS
from memorybus.ids import new_secret
from memorybus_console.web import serving
from memorybus_console.web.access import own_token
from stage import Stage, wait_for

_PROVIDERS = 5
_MILLION = 1_000_000
_REQUESTS = 11
_NOOP = "bench.providers:NoopProvider"
_PATHS = {
    "page_overview_ms": "/",
    "page_provider_ms": "/providers/noop1",
    "page_history_ms": "/history",
}


def measure(size: Size) -> Figures:
    """Return milliseconds of a request of each view, with the look it needs."""
    events = _MILLION if size.long_runs > 1 else size.drained
    with Stage() as stage:
        settings = stage.with_providers({f"noop{n}": _NOOP for n in range(_PROVIDERS)})
        Filler(stage, spread(settings.partitions, 64)).fill(events)
        most = stage.with_providers({f"noop{n}": _NOOP for n in range(1, _PROVIDERS)})
        with stage.worker(most), served(settings) as operator:
            for number in range(1, _PROVIDERS):
                stage.await_applied(f"noop{number}")
            operator.ask("/")
            found = medians([_measured(operator) for _ in range(_REQUESTS)])
    return found | {"page_events": float(events)}


class Operator(msgspec.Struct, frozen=True):
    """Who asks for the page, with its token."""

    where: Address
    token: str

    def ask(self, path: str) -> tuple[float, str]:
        """Ask later than a look is kept; return milliseconds, and the page.

        Raises:
            RuntimeError: it is not the page.
        """
        time.sleep(CACHE_SECONDS)
        headers = {"Accept": "text/html", "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(self.where.host, self.where.port, timeout=60)
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        took = time.perf_counter() - began
        connection.close()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{path} failed: {answer.status}")
        return took * 1000, text


def _measured(operator: Operator) -> Figures:
    figures = {}
    for name, path in _PATHS.items():
        figures[name], text = operator.ask(path)
        if "noop1" not in text:
            raise RuntimeError(f"{path} does not name noop1")
    return figures


@contextmanager
def served(settings: Settings) -> Iterator[Operator]:
    """Serve the page on a thread; yield who may see all of it."""
    own = own_token(settings.page_token_path, new_secret)
    with serving_thread(serving.build_server(serving.build_site(settings, own))) as where:
        yield Operator(where, own.token)


@contextmanager
def serving_thread(server: uvicorn.Server) -> Iterator[Address]:
    """Run a server on a thread; yield its address."""
    listener = serving.open_listener(Address("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        wait_for("the page to be served", lambda: server.started)
        yield Address(*listener.getsockname())
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
