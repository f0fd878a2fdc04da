"""The job of a reading tool: wait until the session's events are applied, run it, reply."""

import re
from collections.abc import Callable

import msgspec
from memorybus import logs
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import Permanent
from memorybus.events import Position, ToolCalled
from memorybus.jobs import replies
from memorybus.jobs.replies import Reply
from memorybus.jobs.tools import ToolRequest
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys
from memorybus.text.redact import describe_error
from memorybus_providers.base import HookContext, MemoryProvider
from memorybus_providers.dispatch import tool_result
from redis import Redis

from memorybus_workers.jobs.live import live_instance
from memorybus_workers.jobs.read_your_writes import ReadYourWrites

_ID = re.compile("[0-9a-f]{32}")
_NOWHERE = "0-0"


class ToolRunner:
    """Runs reading tools on provider instances that stay open. Belongs to one process.

    Args:
        redis: the log's Redis.
        settings: see `Settings`; ``recall_timeout`` bounds a run.
        clock: time.
        opened: returns the open instance of a name, of the one that serves the provider now.
        forget: closes it, after an error.
    """

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        clock: Clock,
        opened: Callable[[str], MemoryProvider],
        forget: Callable[[str], None],
    ) -> None:
        """Keep what every job needs."""
        self._redis = redis
        self._settings = settings
        self._clock = clock
        self._opened = opened
        self._forget = forget
        self._keys = Keys(settings.namespace)
        self._applied = ReadYourWrites(redis, self._keys, settings.recall_wait, clock)

    def run(self, body: str) -> None:
        """Run one call and reply to it.

        Args:
            body: a `ToolRequest` as JSON.

        Raises:
            Permanent: it is no request of ours: nobody is answered.
            Exception: whatever the provider raises, after the asker got the error.
        """
        request = _parse_request(body, self._settings.partitions)
        logs.bind(session=request.session.id)
        instance = live_instance(request.provider, self._read_live(request.provider))
        self._applied.wait(instance, request.positions)
        try:
            reply = self._answer(request, instance)
        except Exception as error:
            self._forget(instance)  # interrupted anywhere: the next job opens another
            self._put_reply(request, Reply(error=describe_error(error, self._settings.secrets)))
            raise
        self._put_reply(request, reply)

    def _read_live(self, provider: str) -> bytes | None:
        body: bytes | None = self._redis.hget(self._keys.live, provider)  # type: ignore[assignment]
        return body

    def _answer(self, request: ToolRequest, instance: str) -> Reply:
        provider = self._opened(instance)
        if request.tool not in provider.capabilities.reading_tools:
            return Reply(error=f"{request.tool[:64]!r} is no tool that only reads")
        result = tool_result(provider, request.tool, request.arguments, self._context(request))
        event = ToolCalled(provider=request.provider, tool=request.tool)
        return replies.reply_to(event, result, self._settings.reply_max_bytes)

    def _context(self, request: ToolRequest) -> HookContext:
        return HookContext(
            request.scope,
            request.session,
            request.id,
            Position(request.partition, _NOWHERE, 0),
            self._clock.now_ms(),
            self._settings.recall_timeout,
        )

    def _put_reply(self, request: ToolRequest, reply: Reply) -> None:
        key = self._keys.reply(request.partition, request.id)
        replies.write_reply(self._redis, key, request.provider, reply)


def _parse_request(body: str, partitions: int) -> ToolRequest:
    """Parse a request, which may come from anybody who can write to Redis.

    Raises:
        Permanent: it is none.
    """
    try:
        request = msgspec.json.decode(body, type=prepared(ToolRequest))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
        raise Permanent(f"no request for a tool: {error}") from error
    if not _ID.fullmatch(request.id) or not 0 <= request.partition < partitions:
        raise Permanent("no request for a tool: its id or its partition is none")
    return request
