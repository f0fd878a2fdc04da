"""A turn as it is published: cut out of Hermes's transcript, cleaned, bounded. Pure functions.

Hermes hands over its whole transcript after every turn, with its own marks in it. Published are
this turn's messages only, and of them only what OpenAI's format knows (`KEPT`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memorybus.surfaces.hermes.transcripts.scaffolding import opens_turn, text_of, user_text

KEPT = ("role", "content", "name", "tool_calls", "tool_call_id", "tool_name")
"""Keys of a message that are published; the rest is Hermes's own (reasoning, marks, fences)."""

_TEXT = 65_536
"""Characters of one text in a message at first; less if the whole is too large."""

_DATA = 1_024
_LEAST_TEXT = 256
_DEPTH = 24
_WIDEST = 4
"""Bytes of a character at most."""


class TranscriptTurn(msgspec.Struct, frozen=True):
    """Where a turn stands in a transcript.

    Attributes:
        ordinal: how many turns came before it; None if the transcript does not show it.
        messages: its messages as Hermes has them.
    """

    ordinal: int | None
    messages: Sequence[Mapping[str, Any]] = ()


def find_turn(transcript: Sequence[Mapping[str, Any]] | None, user: str) -> TranscriptTurn:
    """Return the turn that a user's words opened: the last that matches, else the last of all.

    Args:
        transcript: Hermes's messages; a later turn may have begun in them already.
        user: what the person said, as Hermes gives it to `sync_turn`.
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

    Long texts are shortened in their middle, which is marked; data URLs are left out. If even
    short texts do not fit, there are no messages: the turn's own texts carry it.
    """
    limit = _TEXT
    while limit >= _LEAST_TEXT:
        kept = tuple(plain_message(message, limit) for message in messages)
        if len(msgspec.msgpack.encode(kept)) <= room:
            return kept
        limit //= 4
    return ()


def plain_message(message: Mapping[str, Any], limit: int = _TEXT) -> dict[str, Any]:
    """Return one message with its known keys only, each text at most `limit` characters."""
    return {key: _plain(message[key], limit, _DEPTH) for key in KEPT if message.get(key)}


def clip_text(text: str, room: int) -> str:
    """Return a text that takes at most `room` bytes, its middle left out if need be."""
    if len(text) * _WIDEST <= room or len(text.encode("utf-8", "replace")) <= room:
        return text
    return _shorten(text, max(_LEAST_TEXT, room // _WIDEST))


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n[… {len(text) - limit} characters left out …]\n"
    half = limit // 2
    return text[:half] + mark + text[-half:]


def _plain(value: object, limit: int, depth: int) -> Any:
    """Return a value as JSON has it, whatever it was."""
    if isinstance(value, str):
        too_large = value.startswith("data:") and len(value) > _DATA
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
