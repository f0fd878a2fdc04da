"""The job of a reading tool: waits until the session's events are applied, runs it, replies."""

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import Permanent
from memorybus.events import Position, ToolCalled
from memorybus.jobs.inspect import Inspection
from memorybus.jobs.tools import ToolRequest
from memorybus.jobs.waiting import Reply, reply_to, write_reply
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys
from memorybus.text.redact import describe_error
from memorybus_providers.base import HookContext
from memorybus_providers.dispatch import tool_result
from redis import Redis
from structlog.contextvars import bind_contextvars

from memorybus_workers.jobs.live import LiveInstances
from memorybus_workers.jobs.prefetch import ReadYourWrites

_NO_ENTRY = "0-0"


class ToolRunner:
    """Runs reading tools on provider instances that stay open. Belongs to one process."""

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        clock: Clock,
        instances: LiveInstances,
        applied: ReadYourWrites,
    ) -> None:
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._instances = instances
        self._applied = applied

    def run(self, body: str) -> None:
        request = parse_request(body, ToolRequest)
        if not 0 <= request.partition < self._settings.partitions:
            raise Permanent("no ToolRequest: its partition is none")
        bind_contextvars(session=request.session.id)
        instance = self._instances.find_serving(request.provider)
        self._applied.wait(instance, request.positions)
        answer = partial(self._answer, request, instance)
        answer_request(self._redis, self._settings, request.partition, request, answer)

    def _answer(self, request: ToolRequest, instance: str) -> Reply:
        try:
            return self._call_tool(request, instance)
        except Exception:
            # The call may have been interrupted anywhere, so the next job opens another instance.
            self._instances.close(instance)
            raise

    def _call_tool(self, request: ToolRequest, instance: str) -> Reply:
        provider = self._instances.open_instance(instance)
        if request.tool not in provider.capabilities.reading_tools:
            return Reply(error=f"{request.tool[:64]!r} is no tool that only reads")
        result = tool_result(provider, request.tool, request.arguments, self._context(request))
        event = ToolCalled(provider=request.provider, tool=request.tool)
        return reply_to(event, result, self._settings.reply_max_bytes)

    def _context(self, request: ToolRequest) -> HookContext:
        return HookContext(
            request.scope,
            request.session,
            request.id,
            Position(request.partition, _NO_ENTRY, 0),
            self._clock.now_ms(),
            self._settings.recall_timeout,
        )


_ID = re.compile("[0-9a-f]{32}")
_Request = TypeVar("_Request", Inspection, ToolRequest)


def parse_request(body: str, kind: type[_Request]) -> _Request:
    """Parse a request, which may come from anybody who can write to Redis."""
    try:
        request = msgspec.json.decode(body, type=prepared(kind))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
        raise Permanent(f"no {kind.__name__}: {error}") from error
    if not _ID.fullmatch(request.id):
        raise Permanent(f"no {kind.__name__}: its id is none")
    return request


def answer_request(
    redis: Redis,
    settings: Settings,
    partition: int,
    request: Inspection | ToolRequest,
    make: Callable[[], Reply],
) -> None:
    key = Keys(settings.namespace).reply(partition, request.id)
    try:
        reply = make()
    except Exception as error:
        failed = Reply(error=describe_error(error, settings.secrets))
        write_reply(redis, key, request.provider, failed)
        raise
    write_reply(redis, key, request.provider, reply)
