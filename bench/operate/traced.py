"""What a drain loses to traces: a worker that exports its spans, against one that has no tracers.

Three logs on one server, alike but for their envelopes' traces: none; those of agents that sample
one trace in a hundred; those of agents that sample none. The first is worked off by a worker as it
comes, the others by one that exports by OTLP to a collector which takes everything (this suite's,
a thread), in turns.
"""

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module

from apply.drain import NOOP, drain_seconds
from filling import Filler, spread
from gauge import Figures, LeftOut, Size, in_turns
from stage import NOTHING, Stage

_DRAIN_FACTOR = 2
"""The drain takes so many times the events of a common one."""

_SAMPLED_SHARES = {"plain": None, "traced": 0.01, "untraced": 0.0}
"""By the log's namespace: the share of traces that its agents sample; None without tracers."""

_FIGURES = {"traced": "drain_with_traces", "untraced": "drain_with_traces_off"}


def measure(size: Size) -> Figures:
    """Return ratios, events per second of each, and what the collector got."""
    try:
        import_module("opentelemetry.exporter.otlp.proto.http")
    except ImportError as error:
        raise LeftOut(f"{error}; install it: pip install 'memorybus[otel]'") from error
    count = _DRAIN_FACTOR * size.drained
    with Stage() as stage, _collecting() as collector:
        logs = {
            name: _filled(stage.beside(name), share, count)
            for name, share in _SAMPLED_SHARES.items()
        }
        stage.settle()
        sides = {name: _drain(log, name, collector.variables, count) for name, log in logs.items()}
        rates = in_turns(sides, size.long_runs + 1)
        figures = {"traces_exported_bytes": float(collector.taken)}
    for name, figure in _FIGURES.items():
        figures[f"{figure}_over_without"] = rates[name] / rates["plain"]
        figures[f"{figure}_per_s"] = rates[name]
    figures["drain_without_traces_per_s"] = rates["plain"]
    return figures


def _filled(stage: Stage, share: float | None, count: int) -> Stage:
    sessions = spread(stage.settings.partitions, 64)
    filler = (
        Filler(stage, sessions) if share is None else Filler(stage, sessions, traces=_traces(share))
    )
    filler.fill(count)
    return stage


def _traces(share: float) -> Iterator[str]:
    """Yield the traceparents of publishers that sample so many of their traces."""
    rng = random.Random(0)
    while True:
        flags = int(rng.random() < share)
        yield f"00-{rng.getrandbits(128):032x}-{rng.getrandbits(64):016x}-{flags:02x}"


def _drain(stage: Stage, log: str, exporting: Mapping[str, str], count: int) -> Callable[[], float]:
    """Return what drains a log with a fresh instance, and returns events per second."""
    added = NOTHING if _SAMPLED_SHARES[log] is None else exporting
    names = (f"{log}{number}" for number in itertools.count())
    return lambda: count / drain_seconds(stage, next(names), NOOP, added=added)


class _Collector(ThreadingHTTPServer):
    """Takes everything, and keeps nothing but the number of bytes."""

    taken = 0

    @property
    def variables(self) -> Mapping[str, str]:
        """What a worker has in its environment: it exports here what the agents sampled."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_address[1]}"}


class _Taker(BaseHTTPRequestHandler):
    server: _Collector

    def do_POST(self) -> None:
        self.server.taken += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _collecting() -> Iterator[_Collector]:
    with _Collector(("127.0.0.1", 0), _Taker) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        yield collector
        collector.shutdown()
