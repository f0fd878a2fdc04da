"""Answers the probes of platforms next to the metrics: ``/livez`` and ``/readyz``; pure."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

METRICS: Final = "/metrics"
LIVE: Final = "/livez"
READY: Final = "/readyz"


class ProbeTarget(Protocol):
    """The process that the probes ask about. No answer needs Redis, or waits for anything."""

    def lives(self) -> bool:
        """Say whether it works; if not, it should be started again."""

    def is_ready(self) -> bool:
        """Say whether it has started, and is not ending."""


def with_probes(metrics: "WSGIApplication", probed: ProbeTarget) -> "WSGIApplication":
    """Return an application that answers both probes, and shows metrics only at ``/metrics``.

    Args:
        metrics: the application that shows the metrics.
        probed: the process that answers the probes.
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
