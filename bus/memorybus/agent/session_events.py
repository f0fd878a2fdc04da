"""Builds the events of a session from what the agent says, cleaned and checked; pure."""

import re
from collections.abc import Iterable, Mapping
from typing import TypedDict, get_args

import msgspec

from memorybus.errors import InvalidEvent
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    Message,
    StoreName,
    WriteAction,
)
from memorybus.receipt import Receipt
from memorybus.text.cleaning import clean_text
from memorybus.wire.exact import refusal, whole

_MESSAGE_ROOM = 1_024
_SECONDS_FROM, _SECONDS_END = 10**9, 10**10
"""Times since 2001 in seconds. As milliseconds they would be in the first months of 1970."""
_ID = re.compile("[0-9a-f]{32}")
_MOST_DETAILS = 32
_LONGEST_DETAIL = 1_024  # the most characters of a detail's name or value


def session_details(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the details that a host gives of a session, cleaned: the first 32 of them (G10).

    A detail of more than 1,024 characters is left out, because a name that is cut is another name.
    """
    cleaned = _clean_pairs("details", given)
    short = [(n, v) for n, v in cleaned.items() if v and max(len(n), len(v)) <= _LONGEST_DETAIL]
    return dict(short[:_MOST_DETAILS])


class TurnDetails(TypedDict, total=False):
    """Everything that an agent may say of a completed turn in addition to its texts."""

    user_name: str  # the person's name
    assistant_name: str  # the agent's name
    model: str  # which model answered
    tokens_in: int  # prompt tokens
    tokens_out: int  # tokens of the answer
    cost: float  # US dollars, if known
    synthetic: bool  # whether the host wrote the user's text itself, so that no person said it
    source_id: str  # the id that an imported turn has in its source
    replaces: str  # the event with an older form of the turn


def memory_write(
    action: WriteAction,
    store: StoreName,
    content: str = "",
    old_text: str = "",
    provenance: Mapping[str, str] | None = None,
) -> MemoryWritten:
    """Return a memory write; see `Session.memory_written`.

    `InvalidEvent`: the action or store is unknown, or a text that the action needs is missing.
    """
    event = MemoryWritten(
        action=action,
        store=store,
        content=clean_text(content, "content"),
        old_text=clean_text(old_text, "old_text"),
        provenance=_clean_pairs("provenance", provenance),
    )
    _check_write(action, store, content, old_text)
    return event


def build_compressions(
    messages: tuple[Message, ...],
    compression_count: int,
    max_bytes: int,
    *,
    wants_reply: bool = False,
) -> list[ContextCompressing]:
    """Return the events that carry some clean messages, each at most `max_bytes` large."""
    count = whole("compression_count", compression_count)
    return [
        ContextCompressing(messages=part, compression_count=count, wants_reply=wants_reply)
        for part in _split_messages(messages, max_bytes)
    ]


def checked_time(at: int | None) -> int | None:
    """Return a time of an event that a caller gave, milliseconds; None for now."""
    if at is None:
        return None
    at = whole("at", at)
    if _SECONDS_FROM <= at < _SECONDS_END:
        raise InvalidEvent(f"`at` is {at}, which looks like seconds; milliseconds are wanted")
    return at


def checked_event_ids(events: Iterable[Receipt | str]) -> tuple[str, ...]:
    """Return the ids of the events that a rewind takes back, each once; see `Session.undo`."""
    ids = [event.event_id if isinstance(event, Receipt) else event for event in events]
    for event_id in ids:
        if not isinstance(event_id, str) or not _ID.fullmatch(event_id):
            raise InvalidEvent(
                f"{str(event_id)[:40]!r} is no event's id: 32 hex digits, of a receipt"
            )
    return tuple(dict.fromkeys(ids))


def _clean_pairs(field: str, given: Mapping[str, str] | None) -> dict[str, str]:
    if not isinstance(given, Mapping | None):
        raise refusal(field, dict[str, str], given)
    return {clean_text(k, field): clean_text(v, field) for k, v in (given or {}).items()}


def _check_write(action: str, store: str, content: str, old_text: str) -> None:
    for field, kind, word in (("action", WriteAction, action), ("store", StoreName, store)):
        if not isinstance(word, str):
            raise refusal(field, kind, word)
        if word not in get_args(kind):
            choices = ", ".join(get_args(kind))
            raise InvalidEvent(f"memory write: `{field}` {word[:40]!r} is none of {choices}")
    if action != "remove" and not content.strip():
        raise InvalidEvent(f"memory write: {action} needs `content`")
    if action != "add" and not old_text.strip():
        raise InvalidEvent(f"memory write: {action} needs `old_text`, part of the entry meant")


def _split_messages(messages: tuple[Message, ...], max_bytes: int) -> list[tuple[Message, ...]]:
    """Split messages into parts that each fit an event; a message too large is a part by itself."""
    parts: list[tuple[Message, ...]] = []
    part: list[Message] = []
    size = _MESSAGE_ROOM
    for message in messages:
        length = len(msgspec.msgpack.encode(message))
        if part and size + length > max_bytes:
            parts.append(tuple(part))
            part, size = [], _MESSAGE_ROOM
        part.append(message)
        size += length
    return [*parts, tuple(part)]
