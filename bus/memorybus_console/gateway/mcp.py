"""MCP over HTTP (streamable), without sessions: each request names its key, and so its scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.errors import MemoryBusError
from memorybus.msgspec_types import prepared
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memorybus_console.gateway.access import Gate, RequestThreads
from memorybus_console.gateway.app import MOST_BODY_BYTES, respond
from memorybus_console.gateway.gateway import Gateway
from memorybus_console.gateway.keys import ApiKey, Right
from memorybus_console.gateway.messages import SessionRequest
from memorybus_console.gateway.problems import RequestRefused, problem_of
from memorybus_console.mcp.server import MemoryServer

_TIMEOUT: Final = 10.0
"""Seconds to wait for providers."""

_RIGHTS: Final[tuple[Right, ...]] = ("recall", "publish")
"""What a key needs besides `tools`: a host recalls, remembers, and reads stories."""

_SESSION: ContextVar[Session] = ContextVar("memorybus_mcp_session")
"""The session of the request under way: handlers run in its context."""


class McpEndpoint:
    """Answers MCP requests.

    Args:
        bus: the bus.
        gateway: finds sessions.
        gate: knows who may call.
        threads: where requests wait.
    """

    def __init__(
        self, bus: MemoryBus, gateway: Gateway, gate: Gate, threads: RequestThreads
    ) -> None:
        self._bus = bus
        self._gateway = gateway
        self._gate = gate
        self._threads = threads
        self._manager = StreamableHTTPSessionManager(
            MemoryServer(bus, _SESSION.get, _TIMEOUT, threads.limiter).build(),
            json_response=True,
            stateless=True,
            max_request_body_size=MOST_BODY_BYTES,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests meanwhile."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            key, session = await run_in_threadpool(self._find_session, request)
        except (MemoryBusError, msgspec.ValidationError, RequestRefused) as error:
            problem = problem_of(error, self._bus.settings.secrets)
            await respond(problem)(scope, receive, send)
            return
        mark = _SESSION.set(session)
        try:
            async with self._threads.turn(key):
                await self._manager.handle_request(scope, receive, send)
        finally:
            _SESSION.reset(mark)

    def _find_session(self, request: Request) -> tuple[ApiKey, Session]:
        caller = self._gate.admit(request, "tools")
        if request.method == "GET":  # the server never speaks first, and a stream would take a turn
            raise RequestRefused(405, "NoStream", "send POST: this server opens no stream")
        for right in _RIGHTS:
            caller.key.check(right)
        named = {"session": f"mcp-{caller.key.id}"} | dict(request.query_params)
        asked = msgspec.convert(named, prepared(SessionRequest))
        return caller.key, self._gateway.session(caller, asked)
