"""Two questions beside the metrics: ``/livez`` and ``/readyz``, as platforms ask them; pure."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

METRICS: Final = "/metrics"
LIVE: Final = "/livez"
READY: Final = "/readyz"


class ProbeTarget(Protocol):
    """What is asked whether it lives. Neither answer asks Redis, nor waits for anything."""

    def lives(self) -> bool:
        """Say whether it works; if not, it should be started again."""

    def is_ready(self) -> bool:
        """Say whether it has started and does not end yet."""


def with_probes(metrics: "WSGIApplication", probed: ProbeTarget) -> "WSGIApplication":
    """Return an application that answers both questions, and shows metrics at ``/metrics`` alone.

    Args:
        metrics: shows them.
        probed: whom it asks.
    """
    questions: dict[str, Callable[[], bool]] = {LIVE: probed.lives, READY: probed.is_ready}

    def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == METRICS:
            return metrics(environ, start)
        if path not in questions:
            return _respond(start, "404 Not Found", f"{METRICS}, {LIVE} or {READY}")
        well = questions[path]()
        return _respond(
            start, "200 OK" if well else "503 Service Unavailable", "yes" if well else "no"
        )

    return answer


def _respond(start: "StartResponse", status: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
