"""Cuts a turn out of Hermes's transcript and bounds it for publishing. Pure functions.

After every turn Hermes passes its whole transcript, with its own marks in it. The bus publishes
only the messages of this turn, and of each message only the keys of OpenAI's format
(`PUBLISHED_KEYS`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memorybus.surfaces.hermes.transcripts.scaffolding import opens_turn, text_of, user_text

PUBLISHED_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "tool_name")
"""The keys of a message that are published; the others are Hermes's own (reasoning, marks)."""

_MAX_TEXT_CHARS = 65_536
"""The longest text of a message, characters; it is reduced if all messages are too large."""

_MAX_DATA_CHARS = 1_024
_MIN_TEXT_CHARS = 256
_MAX_DEPTH = 24
_MAX_BYTES_PER_CHAR = 4
"""The most bytes that a character takes."""


class TranscriptTurn(msgspec.Struct, frozen=True):
    """A turn's place in a transcript.

    Attributes:
        ordinal: how many turns come before it; None if the transcript does not contain it.
        messages: its messages as Hermes has them.
    """

    ordinal: int | None
    messages: Sequence[Mapping[str, Any]] = ()


def find_turn(transcript: Sequence[Mapping[str, Any]] | None, user: str) -> TranscriptTurn:
    """Return the last turn that a user's words opened, or the very last turn if none matches.

    Args:
        transcript: Hermes's messages; a later turn may have begun in them already.
        user: what the person said, as Hermes passes it to `sync_turn`.
    """
    messages = [m for m in transcript or () if isinstance(m, Mapping)]
    starts = [i for i, message in enumerate(messages) if opens_turn(message)]
    if not starts:
        return TranscriptTurn(None)
    matching = [n for n, i in enumerate(starts) if _has_words(messages[i], user)]
    ordinal = matching[-1] if matching else len(starts) - 1
    end = starts[ordinal + 1] if ordinal + 1 < len(starts) else len(messages)
    return TranscriptTurn(ordinal, messages[starts[ordinal] : end])


def _has_words(message: Mapping[str, Any], user: str) -> bool:
    text = text_of(message.get("content"))
    return user == text or user_text(text).strip() == user.strip()


def bounded_messages(
    messages: Sequence[Mapping[str, Any]], room: int
) -> tuple[dict[str, Any], ...]:
    """Return messages as they are published, in at most `room` bytes.

    A mark replaces the middle of a long text, and data URLs are left out. If the messages do not
    fit even with short texts, none is returned, and the turn consists of its two texts.
    """
    limit = _MAX_TEXT_CHARS
    while limit >= _MIN_TEXT_CHARS:
        kept = tuple(plain_message(message, limit) for message in messages)
        if len(msgspec.msgpack.encode(kept)) <= room:
            return kept
        limit //= 4
    return ()


def plain_message(message: Mapping[str, Any], limit: int = _MAX_TEXT_CHARS) -> dict[str, Any]:
    """Return a message with only `PUBLISHED_KEYS`, each text cut to about `limit` characters."""
    return {
        key: _plain(message[key], limit, _MAX_DEPTH) for key in PUBLISHED_KEYS if message.get(key)
    }


def clip_text(text: str, room: int) -> str:
    """Return a text in at most about `room` bytes; a mark replaces the middle of a longer one."""
    if len(text) * _MAX_BYTES_PER_CHAR <= room or len(text.encode("utf-8", "replace")) <= room:
        return text
    return _shorten(text, max(_MIN_TEXT_CHARS, room // _MAX_BYTES_PER_CHAR))


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n[… {len(text) - limit} characters left out …]\n"
    half = limit // 2
    return text[:half] + mark + text[-half:]


def _plain(value: object, limit: int, depth: int) -> Any:
    """Return any value as one that JSON can hold."""
    if isinstance(value, str):
        too_large = value.startswith("data:") and len(value) > _MAX_DATA_CHARS
        return f"[data of {len(value)} characters]" if too_large else _shorten(value, limit)
    if isinstance(value, Mapping | list | tuple) and depth > 0:
        return _container(value, limit, depth - 1)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    return f"[{type(value).__name__}]"


def _container(value: Mapping[Any, Any] | Sequence[Any], limit: int, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, limit, depth) for key, inner in value.items()}
    return [_plain(inner, limit, depth) for inner in value]
