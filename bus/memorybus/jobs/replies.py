"""Replies of providers to events whose publisher waits, and to calls of reading tools.

There is a hash for each event or call, with a field for each provider that answered. It lives for
`REPLY_TTL_SECONDS`, lies in the slot of the event's partition, and only the asker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from memorybus.events import AnyEvent, ContextCompressing, Event, ToolCalled
from memorybus.msgspec_types import prepared

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
    """Return whether the publisher of an event asked for a reply."""
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
