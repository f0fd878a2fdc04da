"""Runs the page until a signal stops it."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import uvicorn
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.health.metrics_server import Address, is_loopback
from memorybus.health.verdict import BusStateCache
from memorybus.ids import new_secret
from memorybus.text.redact import mask_record
from memorybus_workers import logs
from uvicorn.protocols.http.h11_impl import H11Protocol

from memorybus_console.gateway.opening import OpenGateway, open_gateway
from memorybus_console.web import answers
from memorybus_console.web.access import Access, OwnToken, hash_token, own_token
from memorybus_console.web.app import build_app
from memorybus_console.web.page import Site
from memorybus_console.web.pages import PAGES
from memorybus_console.web.past import Past
from memorybus_console.web.tasks import PageTasks

GRACE_SECONDS = 3  # seconds that open requests may still take when the server stops
REQUEST_SECONDS = 5.0  # seconds in which the head of a request must have come
MOST_WITHOUT_REQUEST = 128  # the most connections without one; the oldest of them is closed


def build_site(settings: Settings, own: OwnToken | None = None) -> Site:
    """Return the site of a bus.

    Args:
        own: the page's own token, if the settings name neither a token nor a proxy.
    """
    return Site(
        settings=settings,
        clock=SYSTEM,
        bus_state=BusStateCache(settings, SYSTEM),
        past=Past(),
        access=Access(settings, SYSTEM, new_secret, hash_token(own.token) if own else ""),
        tasks=PageTasks(SYSTEM),
        templates=answers.template_environment(),
    )


def run(
    settings: Settings,
    where: Address,
    tell: Callable[[Address, OwnToken | None, OpenGateway | None], None],
    origins: Sequence[str] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        where: the address; port 0 lets the system choose one.
        tell: called when the server listens, with its address, its own token, if it made one, and
            its gateway, if it has one.
        origins: the origins of browsers' pages that may call the gateway; None for no gateway.
    """
    own = None
    if not settings.page_token and not settings.page_proxy_header:
        _check_loopback(where)
        own = own_token(settings.page_token_path, new_secret)
    site = build_site(settings, own)
    logs.set_up(settings.log, "warning" if origins is None else "info", settings.secrets)
    with ExitStack() as stack:
        listener = stack.enter_context(open_listener(where))
        gateway = None
        if origins is not None:
            opened = open_gateway(settings, site.ends, origins, on_loopback=is_loopback(where.host))
            gateway = stack.enter_context(opened)
        tell(Address(where.host, listener.getsockname()[1]), own, gateway)
        asyncio.run(build_server(site, gateway).serve(sockets=[listener]))


def _check_loopback(where: Address) -> None:
    if not is_loopback(where.host):
        raise ConfigError(
            f"others can reach {where.host}: set page_token (memorybus config page-token makes "
            f"one) or page_proxy_header, or serve on 127.0.0.1"
        )


def build_server(site: Site, gateway: OpenGateway | None = None) -> uvicorn.Server:
    """Return a server of a site, which serves until its `should_exit` is set."""
    config = uvicorn.Config(
        build_app(site, PAGES, gateway),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        http=_BoundedConnection,
        ws="none",
        backlog=MOST_WITHOUT_REQUEST,  # so many are accepted before the oldest one is closed
        lifespan="on",
    )
    logging.getLogger("uvicorn.error").addFilter(mask_record)
    return _Server(config, site)


class _BoundedConnection(H11Protocol):
    """A connection that closes if a request does not come: uvicorn waits for one without end.

    The number of those that wait is bounded, since each takes a file descriptor (G10).
    """

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()
        connections = (each for each in self.connections if isinstance(each, _BoundedConnection))
        waiting = {each: each.timer.when() for each in connections if each.timer}
        if len(waiting) > MOST_WITHOUT_REQUEST:
            min(waiting, key=waiting.__getitem__).drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_nothing()
        elif self.timer is None:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self.timer = self.loop.call_later(REQUEST_SECONDS, self.drop)

    def drop(self) -> None:
        self._expect_nothing()
        self.transport.close()

    def _expect_nothing(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class _Server(uvicorn.Server):
    """A server that ends the streams to open pages before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, then shut down as uvicorn does."""
        self._site.ends.set()
        await super().shutdown(sockets)


def open_listener(where: Address) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    try:
        listener = socket.create_server((where.host, where.port), family=family)
    except OSError as error:
        raise ConfigError(f"{where}: {error}; choose another --port or --host") from error
    # Accepted sockets inherit it. asyncio sets it only where a socket names its protocol, and ours
    # does not: then the second part of each response waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
