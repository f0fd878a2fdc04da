"""A small HTTP server for Prometheus and for platforms: ``/metrics``, ``/livez``, ``/readyz``."""

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, install_command

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

METRICS: Final = "/metrics"
LIVE: Final = "/livez"
READY: Final = "/readyz"


class ProbeTarget(Protocol):
    """The process that the probes ask about. No answer needs Redis, or waits for anything."""

    def lives(self) -> bool:
        """Return whether it works; if not, it should be started again."""

    def is_ready(self) -> bool:
        """Return whether it has started, and is not ending."""


def with_probes(metrics: "WSGIApplication", probed: ProbeTarget) -> "WSGIApplication":
    """Return an application that answers both probes, and shows metrics only at ``/metrics``."""
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


LOOPBACK = "127.0.0.1"
"""The default address: the figures tell how much people talk, so they are not shown to networks."""


class Address(msgspec.Struct, frozen=True):
    """Where to listen; port 0 lets the system choose one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def parse_address(text: str) -> Address:
    """Read ``HOST:PORT``, ``[::1]:PORT``, ``:PORT`` or ``PORT``; the default host is loopback."""
    netloc = text if ":" in text else f":{text}"
    with suppress(ValueError):
        parts = urlsplit(f"//{netloc}")
        if parts.port is not None and parts.netloc == netloc and parts.username is None:
            return Address(parts.hostname or LOOPBACK, parts.port)
    raise ConfigError(f"metrics: {text!r} is not an address; write HOST:PORT, as 127.0.0.1:9464")


@contextmanager
def serve_metrics(settings: Settings, where: Address, probed: ProbeTarget) -> Iterator[Address]:
    """Serve the metrics and the probes from separate threads; yield the address."""
    try:
        from prometheus_client import make_wsgi_app, start_http_server

        from memorybus.health.metrics import registry
    except ImportError as error:
        raise ConfigError(
            f"metrics need prometheus-client; run: {install_command('metrics')}"
        ) from error
    try:
        metrics = registry(settings)
        server, thread = start_http_server(where.port, where.host, metrics)
    except OSError as error:
        raise ConfigError(f"metrics: {where}: {error}; choose another address") from error
    server.set_app(with_probes(make_wsgi_app(metrics), probed))
    try:
        yield Address(where.host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
