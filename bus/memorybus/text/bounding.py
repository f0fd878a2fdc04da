"""Shortens what a host's messages hold until they fit an event (G10). Pure functions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

LONGEST_TEXT = 65_536
"""The longest text of a message of a host, characters; it is reduced if all are too large."""

SHORTEST_TEXT = 256  # no text is cut to fewer characters
_MAX_DATA_CHARS = 1_024
_MAX_DEPTH = 24


def fit_messages(
    messages: Sequence[Mapping[str, Any]], room: int, longest: int
) -> tuple[dict[str, Any], ...]:
    """Return messages in at most `room` bytes of msgpack.

    A mark replaces the middle of a long text, and data URLs are left out. If the messages do not
    fit even with short texts, none is returned, and the turn consists of its two texts.
    """
    while longest >= SHORTEST_TEXT:
        kept = tuple(plain_fields(message, longest) for message in messages)
        if len(msgspec.msgpack.encode(kept)) <= room:
            return kept
        longest //= 4
    return ()


def plain_fields(message: Mapping[str, Any], longest: int) -> dict[str, Any]:
    return {key: plain_value(value, longest) for key, value in message.items()}


def shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n[… {len(text) - limit} characters left out …]\n"
    half = limit // 2
    return text[:half] + mark + text[-half:]


def plain_value(value: object, limit: int, depth: int = _MAX_DEPTH) -> Any:
    """Return any value as one that JSON can hold, without long texts, data URLs and deep values."""
    if isinstance(value, str):
        too_large = value.startswith("data:") and len(value) > _MAX_DATA_CHARS
        return f"[data of {len(value)} characters]" if too_large else shorten(value, limit)
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
        return {str(key): plain_value(inner, limit, depth) for key, inner in value.items()}
    return [plain_value(inner, limit, depth) for inner in value]
