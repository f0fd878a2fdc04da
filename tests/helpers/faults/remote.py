"""A memory backend behind HTTP that can be made to misbehave, and the provider that talks to it.

The backend takes an event's id as its key and keeps its calls and its effects apart, so that a test
sees what was asked twice and what was done twice. Named as ``helpers.faults.remote:Remote``.
"""

import http.client
import http.server
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from memorybus.clock import SYSTEM
from memorybus.errors import Permanent, Transient, Unavailable
from memorybus.events import TurnCompleted
from memorybus_providers.base import Capabilities, HookContext, MemoryProvider

from helpers.faults.oracle import Effect

ANSWER: Final = b'{"stored": true}'
MISDEEDS: Final = (
    "429",
    "500",
    "503",
    "timeout",
    "half a body",
    "slow loris",
    "broken json",
    "reset after storing",
)


class Remote(MemoryProvider):
    """Posts each turn to the backend of its options, under the event's id."""

    kind = "remote"
    delivery = "keyed"
    capabilities = Capabilities(recall=False, concurrent=True, handles=frozenset({TurnCompleted}))

    def open(self) -> None:
        """Connect at the first call of each thread."""
        self._local = threading.local()

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Post a turn.

        Raises:
            Unavailable: nobody listens.
            Permanent: the backend wants this event never (4xx, but for 429).
            Transient: anything else that went wrong; the event may have been stored.
        """
        body = {"id": ctx.event_id, "key": ctx.session.root, "ordinal": event.ordinal}
        try:
            status, answer = self._post(json.dumps(body).encode())
            stored = status == 200 and json.loads(answer)["stored"]
        except ConnectionRefusedError as error:
            self._drop()
            raise Unavailable(f"the backend does not listen: {error}") from error
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            self._drop()
            raise Transient(f"the backend's answer: {type(error).__name__}: {error}") from error
        if not stored:
            refused = 400 <= status < 500 and status != http.HTTPStatus.TOO_MANY_REQUESTS
            raise (Permanent if refused else Transient)(f"the backend answered {status}")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        """Post with a deadline for the whole answer, however slowly it drips."""
        timeout = float(self.config.options["timeout"])
        deadline = SYSTEM.monotonic() + timeout
        connection = self._connection(timeout)
        connection.request("POST", "/events", body)
        response = connection.getresponse()
        answer = b""
        while piece := response.read1(1024):
            answer += piece
            if SYSTEM.monotonic() > deadline:
                raise TimeoutError("the answer drips")
        if response.length:
            raise http.client.IncompleteRead(answer)
        response.close()  # else the connection takes no other request
        return response.status, answer

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if getattr(self._local, "connection", None) is None:
            port = int(self.config.options["port"])
            self._local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        return self._local.connection

    def _drop(self) -> None:
        """Forget a connection whose state nobody knows."""
        self._local.connection.close()
        self._local.connection = None


class Backend:
    """The backend: it stores each id once, unless it is told to misbehave.

    Attributes:
        port: where it listens.
        calls: how often it was asked.
        done: how often it misbehaved, by misdeed.
        effects: what it stored, in order.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.done: Counter[str] = Counter()
        self.effects: list[Effect] = []
        self._ids: set[str] = set()
        self._plan: list[str] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def misbehave(self, misdeed: str, times: int) -> None:
        """Do a misdeed at the next so many calls."""
        with self._lock:
            self._plan += [misdeed] * times

    def asked(self) -> str:
        """Count a call; return the misdeed that it meets, or ""."""
        with self._lock:
            self.calls += 1
            misdeed = self._plan.pop(0) if self._plan else ""
            self.done[misdeed] += bool(misdeed)
            return misdeed

    def store(self, body: dict[str, Any]) -> None:
        """Keep an event, once."""
        with self._lock:
            if body["id"] not in self._ids:
                self._ids.add(body["id"])
                self.effects.append(Effect(body["id"], body["key"], body["ordinal"]))

    def hold(self, seconds: float) -> None:
        """Keep a caller waiting, but not beyond the end."""
        self._released.wait(seconds)

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> Callable[..., http.server.BaseHTTPRequestHandler]:
        return lambda *args: _Handler(self, *args)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that has gone is no error."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, backend: Backend, *args: Any) -> None:
        self._backend = backend
        super().__init__(*args)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        misdeed = self._backend.asked()
        if misdeed.isdigit():
            self._answer(int(misdeed), b"{}")
        elif misdeed == "timeout":
            self._backend.hold(5)
            self.close_connection = True
        else:
            self._backend.store(body)
            self._told(misdeed)

    def _told(self, misdeed: str) -> None:
        """The event is stored: say so, or fail to."""
        if misdeed == "half a body":
            self._answer(200, ANSWER[:5], length=len(ANSWER))
            self.close_connection = True
        elif misdeed == "slow loris":
            self._drip()
        elif misdeed == "broken json":
            self._answer(200, b'{"stored": tr')
        elif misdeed == "reset after storing":
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
        else:
            self._answer(200, ANSWER)

    def _answer(self, status: int, body: bytes, length: int = -1) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length < 0 else length))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self._answer(200, b"", length=1_000)
        with suppress(OSError):
            for _ in range(100):
                self.wfile.write(b" ")
                self._backend.hold(0.05)
        self.close_connection = True


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Return a backend that listens on a port of this machine."""
    running = Backend()
    yield running
    running.close()
