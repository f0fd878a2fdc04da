"""Replies of providers, and the wait for them, never longer than the caller allows (G9).

A separate thread asks and listens, and the caller waits for that thread: so no name server, no
connection and no half-dead Redis can hold an agent beyond its deadline. The replies that the
thread has received by then are returned; the thread itself ends at its next time-out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.backoff import look_pause
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.events import AnyEvent, ContextCompressing, Event, ToolCalled
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from redis import Redis
if TYPE_CHECKING:
    from redis import Redis

REPLY_TTL_SECONDS = 60  # seconds for which a reply stays; nobody waits for one that long
_CUT_MARK = " […]"


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider's answer (stored as msgpack)."""

    text: str = ""  # the answer; a tool's result is JSON
    error: str = ""  # why it could not answer, in one line, or ""


_decoder = msgspec.msgpack.Decoder(prepared(Reply))


def is_awaited(event: Event | AnyEvent) -> bool:
    return isinstance(event, ContextCompressing | ToolCalled) and event.wants_reply


def reply_to(event: Event | AnyEvent, text: str, most: int) -> Reply:
    """Return the reply to an event: a text is cut at `most` bytes, a longer tool result refused."""
    body = text.encode(errors="replace")
    size = len(body)
    if size <= most:
        return Reply(body.decode())
    if isinstance(event, ContextCompressing):
        return Reply(body[:most].decode(errors="ignore") + _CUT_MARK)
    return Reply(
        error=f"its result of {size} bytes is larger than `reply_max_bytes` ({most}); ask for less"
    )


def write_reply(redis: Redis, key: str, provider: str, reply: Reply) -> None:
    with redis.pipeline(transaction=True) as pipe:
        pipe.hset(key, provider, msgspec.msgpack.encode(reply))
        pipe.expire(key, REPLY_TTL_SECONDS)
        pipe.execute()


def read_replies(fields: Mapping[bytes, bytes]) -> dict[str, Reply]:
    """Return the replies in a hash by provider; one that cannot be read becomes an error."""
    return {name.decode(errors="replace"): _decode_reply(body) for name, body in fields.items()}


def _decode_reply(body: bytes) -> Reply:
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Reply(error="the reply cannot be read: another release wrote it")


_log = logging.getLogger("memorybus")
_MIN_WAIT_SECONDS = 0.001


class AwaitedReplies(msgspec.Struct, frozen=True):
    """The replies for which a caller waits."""

    partition: int  # the partition under whose keys they are written
    ids: Sequence[str]  # the ids of the events, or of the call
    providers: Collection[str]  # the providers that should answer each event or call
    problem: str = ""  # why nobody will answer; "" if somebody may


class ReceivedReplies(msgspec.Struct):
    """The replies that came in time."""

    replies: dict[str, list[Reply]] = {}  # the replies by provider, in the order of the ids
    problem: str = ""  # why no more replies can come, or ""


AskForReplies = Callable[["Redis"], AwaitedReplies]
"""Says which replies to wait for, and may ask for them; called once, with the log's Redis."""


class Listener:
    """Asks and waits for replies. Safe to call from any thread."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = Keys(settings.namespace)

    def wait_for_replies(self, ask: AskForReplies, timeout: float) -> ReceivedReplies:
        """Return the replies that come within `timeout` seconds; no failure of Redis is raised."""
        heard = ReceivedReplies()
        until = self._clock.monotonic() + timeout
        thread = threading.Thread(
            target=self._listen, args=(ask, until, heard), name="memorybus-listener", daemon=True
        )
        thread.start()
        thread.join(max(0.0, timeout))
        return ReceivedReplies(dict(heard.replies), heard.problem)

    def _listen(self, ask: AskForReplies, until: float, heard: ReceivedReplies) -> None:
        try:
            self._ask_and_wait(ask, until, heard)
        except Exception as error:  # no error may stop the agent (G9)
            expected = isinstance(error, MemoryBusError | OSError)
            _log.debug("listening for replies: %s", error, exc_info=None if expected else error)
            heard.problem = str(error)

    def _ask_and_wait(self, ask: AskForReplies, until: float, heard: ReceivedReplies) -> None:
        from memorybus.redis.connect import TIMEOUT, connect_redis, redis_errors

        left = max(_MIN_WAIT_SECONDS, until - self._clock.monotonic())
        redis = connect_redis(self._settings, timeout=min(TIMEOUT, left), single=True)
        with closing(redis), redis_errors("replies"):
            asked = ask(redis)
            heard.problem = asked.problem
            if not asked.problem:
                self._wait(redis, asked, until, heard)

    def _wait(
        self, redis: Redis, asked: AwaitedReplies, until: float, heard: ReceivedReplies
    ) -> None:
        """Look for replies, less and less often, until all have come or the time is over."""
        keys = [self._keys.reply(asked.partition, one) for one in asked.ids]
        began = self._clock.monotonic()
        while True:
            with redis.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.hgetall(key)
                found = [read_replies(fields) for fields in pipe.execute()]
            heard.replies = {
                name: [one[name] for one in found if name in one] for name in asked.providers
            }
            if all(name in one for one in found for name in asked.providers):
                return
            now = self._clock.monotonic()
            pause = look_pause(now - began)
            if now + pause >= until:
                return
            self._clock.sleep(pause)
