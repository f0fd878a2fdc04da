"""The edge of the gateway: keys, limits, problems, streams, and a record of each request."""

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import InvalidEvent, MemoryBusError
from memorybus.events import Scope
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog
from memorybus.msgspec_types import prepared
from memorybus.query.query import Query
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.routing import Route as HttpRoute

from memorybus_console.gateway import problems
from memorybus_console.gateway.access import Gate, RequestThreads
from memorybus_console.gateway.gateway import ApiCaller, Gateway
from memorybus_console.gateway.keys import Right
from memorybus_console.gateway.messages import ExportEvents, TailEvents
from memorybus_console.gateway.routes import EXPORT, PREFIX, ROUTES, TAIL, Route, openapi_document
from memorybus_console.operations import journal
from memorybus_console.operations.export import ExportRequest, run_export
from memorybus_console.views.events import placed

MOST_BODY_BYTES: Final = 16 << 20
BODY_SECONDS: Final = 30.0
MOST_STREAMS: Final = 64
"""The most streams of events; each has a thread that waits, beside those of other requests."""
_TAIL_SECONDS: Final = 15.0
"""Seconds after which a silent stream sends a comment, so that proxies keep it open."""

_log = logging.getLogger("memorybus")

_Endpoint = Callable[[Request], Awaitable[Response]]
_Answer = Callable[[Request, ApiCaller], Awaitable[Response]]


@dataclass
class Api:
    """Answers requests below `PREFIX`.

    Args:
        gateway: carries them out.
        gate: knows who may call.
        threads: where requests wait.
        settings: the settings of the bus.
        ends: set when the server ends, so that streams end, too.
        clock: time.
    """

    gateway: Gateway
    gate: Gate
    threads: RequestThreads
    settings: Settings
    ends: asyncio.Event
    clock: Clock = SYSTEM

    def __post_init__(self) -> None:
        self._streams = CapacityLimiter(MOST_STREAMS)
        self._open_streams = 0
        self._document = msgspec.json.encode(openapi_document(version("memorybus")))

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the application."""
        streams = ((EXPORT, self._export), (TAIL, self._tail))
        return [
            HttpRoute(f"{PREFIX}/openapi.json", self._show_document),
            *(
                HttpRoute(f"{PREFIX}{each.path}", self._guarded(each.right, run))
                for each, run in streams
            ),
            *(
                HttpRoute(
                    f"{PREFIX}{route.path}",
                    self._guarded(route.right, self._endpoint(route)),
                    methods=[route.method],
                )
                for route in ROUTES
            ),
            HttpRoute(f"{PREFIX}/{{rest:path}}", self._report_missing, methods=_METHODS),
        ]

    async def _show_document(self, _: Request) -> Response:
        return respond_json(self._document, 200)

    async def _report_missing(self, request: Request) -> Response:
        detail = f"there is no {request.method} {request.url.path}; see {PREFIX}/openapi.json"
        return respond(problems.make_problem(404, "NoSuchPath", detail))

    def _guarded(self, right: Right, answer: _Answer) -> _Endpoint:
        """Return an endpoint that answers callers with a right, and records each request."""

        async def endpoint(request: Request) -> Response:
            began, key_id = self.clock.monotonic(), ""
            try:
                caller = await run_in_threadpool(self.gate.admit, request, right)
                key_id = caller.key.id
                response = await answer(request, caller)
            except (MemoryBusError, msgspec.MsgspecError, problems.RequestRefused) as error:
                response = respond(problems.problem_of(error, self.settings.secrets))
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception:
                _log.exception("gateway: %s %s failed", request.method, request.url.path)
                response = respond(problems.problem_of(RuntimeError(), ()))
            _log.info(
                "gateway: key=%s %s %s %s %d ms",
                *(key_id or "-", request.method, request.scope["route"].path),
                *(response.status_code, round((self.clock.monotonic() - began) * 1_000)),
            )
            return response

        return endpoint

    def _endpoint(self, route: Route) -> _Answer:
        kind = prepared(route.request)

        async def answer(request: Request, caller: ApiCaller) -> Response:
            body = await read_body(request) if route.has_body else None
            asked = await run_in_threadpool(read_request, kind, request, body)
            result = await self.threads.run(caller.key, route.run, self.gateway, caller, asked)
            if result is None:
                return Response(status_code=route.status)
            return respond_json(msgspec.json.encode(result), route.status)

        return answer

    # -- streams ----------------------------------------------------------------------------------

    async def _export(self, request: Request, caller: ApiCaller) -> Response:
        asked = read_request(ExportEvents, request)
        scope = self.gateway.scope(caller, asked)
        query = Query(users=(scope.user,), agents=(scope.agent,), workspaces=(scope.workspace,))
        handle, name = tempfile.mkstemp(prefix="memorybus-export-", suffix=".jsonl")
        os.close(handle)
        path = Path(name)
        try:
            wanted = ExportRequest(query=query, file=path)
            act = (run_export, self.settings, wanted, lambda _: None, lambda: None)
            done = await self.threads.run(caller.key, *act)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        headers = {"memorybus-events": str(done.events), "memorybus-whole": str(done.whole).lower()}
        return FileResponse(
            path,
            media_type=EXPORT.media,
            headers=headers,
            background=BackgroundTask(path.unlink, missing_ok=True),
        )

    async def _tail(self, request: Request, caller: ApiCaller) -> Response:
        asked = read_request(TailEvents, request)
        if self._open_streams >= MOST_STREAMS:
            detail = f"{MOST_STREAMS} streams of events are open; end some, or ask again later"
            raise problems.RequestRefused(503, "TooManyStreams", detail)
        events = self._events(asked, self.gateway.scope(caller, asked), request)
        first = await anext(events)  # before the status is sent: Redis may be away
        return StreamingResponse(_continued(first, events), media_type=TAIL.media)

    async def _events(
        self, asked: TailEvents, scope: Scope, request: Request
    ) -> AsyncGenerator[bytes, None]:
        """Yield a person's events as they arrive.

        They end when the caller leaves, the server or the key ends, or Redis is away.
        """
        wanted = journal.EventSelection(asked.session or None, asked.type or None)
        history = await run_in_threadpool(journal.open_history, self.settings)
        with closing(history), self._counted_stream():
            places = journal.ReadPositions.behind_heads(await run_in_threadpool(history.log.heads))
            silent_since = self.clock.monotonic()
            yield b": from now on\n\n"
            while not (self.ends.is_set() or await request.is_disconnected()):
                try:
                    read = partial(self._read_new, request, history.log, places)
                    events = await run_sync(read, limiter=self._streams)
                except MemoryBusError:
                    return
                for event in events:
                    if owns(scope, event) and wanted.wants(event):
                        silent_since = self.clock.monotonic()
                        yield _server_sent(event)
                if self.clock.monotonic() - silent_since > _TAIL_SECONDS:
                    silent_since = self.clock.monotonic()
                    yield b": still here\n\n"

    @contextmanager
    def _counted_stream(self) -> Iterator[None]:
        self._open_streams += 1
        try:
            yield
        finally:
            self._open_streams -= 1

    def _read_new(
        self, request: Request, log: EventLog, places: journal.ReadPositions
    ) -> list[LoggedEvent]:
        """Wait a moment for events, if the caller's key is still valid."""
        self.gate.find_key(request, TAIL.right)
        return list(journal.read_new(log, places))


_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


async def _continued(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        yield first
        async for part in rest:
            yield part


def owns(scope: Scope, event: LoggedEvent) -> bool:
    """Return whether an event is of this agent, person and workspace; pure."""
    owner = event.envelope.scope
    return (owner.agent, owner.user, owner.workspace) == (scope.agent, scope.user, scope.workspace)


def _server_sent(event: LoggedEvent) -> bytes:
    body = msgspec.json.encode(placed(event))
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.envelope.id.encode(),
        type(event.envelope.event).__name__.encode(),
        body,
    )


def read_request(kind: type[Any], request: Request, body: bytes | None = None) -> Any:
    """Return the request that a path, a query and a body make.

    Raises:
        msgspec.MsgspecError: the body is no JSON, or a field is wrong.
        InvalidEvent: a field is given twice.
    """
    try:
        fields = msgspec.json.decode(body) if body else {}
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(f"the body is no JSON that can be read: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidEvent("the body is not a JSON object")
    outside = dict(request.path_params)
    if body is None:
        outside = dict(request.query_params) | outside
    if twice := fields.keys() & outside.keys():
        raise InvalidEvent(f"{', '.join(sorted(twice))}: the path names it already")
    return msgspec.convert(fields | outside, prepared(kind), strict=body is not None)


async def read_body(request: Request) -> bytes:
    """Return a body of JSON.

    Raises:
        RequestRefused: it is of another type, too large, or too slow.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", ""):
        raise problems.RequestRefused(415, "NotJson", "send content-type: application/json")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BODY_BYTES:
                    detail = f"a body has at most {MOST_BODY_BYTES} bytes; send several requests"
                    raise problems.RequestRefused(413, "BodyTooLarge", detail)
                parts.append(part)
    except TimeoutError:
        detail = f"the body did not arrive within {BODY_SECONDS:.0f} s"
        raise problems.RequestRefused(408, "BodyTooSlow", detail) from None
    body = b"".join(parts)
    if body and not kind:
        raise problems.RequestRefused(415, "NotJson", "send content-type: application/json")
    return body


def respond_json(body: bytes, status: int) -> Response:
    """Return a response with a body of JSON."""
    return Response(body, status, media_type="application/json")


def respond(problem: problems.ProblemDetails) -> Response:
    """Return a problem as a response."""
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after else {}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, media_type="application/problem+json")
