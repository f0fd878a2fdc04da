"""Opens the gateway of a process: its bus, its keys, its routes."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogError
from memorybus.ids import new_id
from memorybus.registry.tools_note import ToolsNote
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route

from memorybus_console.gateway.access import Gate, RequestThreads
from memorybus_console.gateway.app import Api
from memorybus_console.gateway.gateway import Gateway
from memorybus_console.gateway.keys import KeyRing

if TYPE_CHECKING:
    from memorybus_console.gateway.mcp import McpEndpoint


@dataclass(frozen=True)
class OpenGateway:
    """The gateway of a process, for its web server.

    Attributes:
        routes: its routes.
        mcp: the endpoint of MCP; None if the SDK is not installed.
        is_keyless: whether there was no key when it was opened.
        origins: the origins of browsers' pages that may call.
    """

    routes: list[BaseRoute]
    mcp: "McpEndpoint | None"
    is_keyless: bool
    origins: Collection[str]

    def middleware(self) -> list[Middleware]:
        """Return what lets browsers call from these origins; they send no cookies."""
        if not self.origins:
            return []
        headers = ["authorization", "content-type", "idempotency-key"]
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(self.origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=headers,
        )
        return [cors]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve meanwhile."""
        if self.mcp is None:
            yield
        else:
            async with self.mcp.running():
                yield


@contextmanager
def open_gateway(
    settings: Settings, ends: asyncio.Event, origins: Collection[str], *, on_loopback: bool
) -> Iterator[OpenGateway]:
    """Open the gateway; its events that Redis has not taken at the end stay in the spool (G1).

    Args:
        settings: the settings of the bus.
        ends: set when the server ends.
        origins: the origins of browsers' pages that may call.
        on_loopback: whether only this machine reaches the server.

    Raises:
        ConfigError: others reach the server, and there is no key.
        SpoolError: nothing can be written under `data_dir`.
    """
    keys = KeyRing(settings, SYSTEM)
    try:
        is_keyless = _is_keyless(keys)
        if is_keyless and not on_loopback:
            raise ConfigError(
                "others reach this address, and no key is known: make one with memorybus key "
                "create, or serve on 127.0.0.1"
            )
        with suppress(LogError):  # Redis is away: the providers' tools come when it answers
            ToolsNote(settings, SYSTEM, new_id).refresh()
        with MemoryBus.connect(settings) as bus:
            gateway, gate, threads = Gateway(bus), Gate(keys, origins, SYSTEM), RequestThreads()
            routes = Api(gateway, gate, threads, settings, ends).routes()
            mcp = _mcp_endpoint(bus, gateway, gate, threads)
            yield OpenGateway([*routes, *_mcp_routes(mcp)], mcp, is_keyless, origins)
    finally:
        keys.close()


def _is_keyless(keys: KeyRing) -> bool:
    try:
        return not keys.all()
    except LogError:
        return True


def _mcp_endpoint(
    bus: MemoryBus, gateway: Gateway, gate: Gate, threads: RequestThreads
) -> "McpEndpoint | None":
    try:
        from memorybus_console.gateway.mcp import McpEndpoint
    except ImportError:
        return None
    return McpEndpoint(bus, gateway, gate, threads)


def _mcp_routes(mcp: "McpEndpoint | None") -> list[BaseRoute]:
    return [] if mcp is None else [Route("/mcp", mcp)]
