"""Removes what must not be remembered from texts and messages, before an event is written.

Recall that the bus injected must never be remembered as if somebody had said it, and a character
that cannot be stored must not stop an event:

- Fenced recall is scrubbed from every text (`scrubber`).
- Keys that begin with an underscore, and ``api_content``, are removed at every depth: hosts keep
  their own marks there, and the bytes that they sent to the model with the recall inside.
- A lone surrogate cannot be encoded as UTF-8, and NUL cannot be stored by PostgreSQL or passed
  through C strings: each becomes U+FFFD, which shows that something was there.

Everything else is kept as it came, including unknown fields.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from memorybus.errors import InvalidEvent
from memorybus.events import Message
from memorybus.text.scrubber import scrub

MAX_DEPTH = 64  # how deep containers may be nested in one message; deeper ones are refused (G10)
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 64) - 1  # the integers that msgpack can hold
_KEY_SHOWN = 40  # characters of a key that an error shows
_MAX_ID = 512
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_Path: TypeAlias = "tuple[_Path, str | int] | None"
"""The path to a value, innermost step first; only an error turns it into a text."""


def clean_text(text: str, field: str = "text") -> str:
    """Return a text as it is remembered: without fenced recall, encodable as UTF-8; idempotent."""
    if not isinstance(text, str):
        raise InvalidEvent(f"`{field}` takes a text, not this {type(text).__name__}")
    if "\x00" in text or not (text.isascii() or _is_encodable(text)):
        text = _UNWRITABLE.sub("\ufffd", text)
    return scrub(text) if "<" in text else text


def clean_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's fields with their texts cleaned; the writer refuses what is no text."""
    return {
        name: value
        if not isinstance(value, str)
        or (value.isascii() and "<" not in value and "\x00" not in value)
        else clean_text(value, name)
        for name, value in fields.items()
    }


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Return chat messages as they are written into an event, with every text in them cleaned.

    `InvalidEvent` names the path, for example ``messages[0].content[2].image``.
    """
    if not isinstance(messages, Iterable):
        raise InvalidEvent(
            f"`messages` takes a list of messages, not this {type(messages).__name__}"
        )
    return tuple([_message(message, (None, number)) for number, message in enumerate(messages)])


def _message(message: object, path: _Path) -> Message:
    if not isinstance(message, Mapping):
        name = type(message).__name__
        raise InvalidEvent(f"{_format_path(path)} must be a mapping with string keys, not a {name}")
    return _mapping(message, path, MAX_DEPTH)


def _mapping(value: Mapping[Any, Any], path: _Path, depth: int) -> Message:
    kept: Message = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise InvalidEvent(
                f"{_format_path(path)}: keys must be strings, not a {type(key).__name__}"
            )
        name = clean_text(str.__str__(key))  # first: a fence may hide how the key begins
        if name[:1] == "_" or name == "api_content":
            continue
        if type(inner) is str:
            inner = clean_text(inner)  # noqa: PLW2901  the common case, kept short
        elif inner is not None:
            inner = _value(inner, (path, key), depth)  # noqa: PLW2901
        kept[name] = inner
    return kept


def _value(value: object, path: _Path, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, Mapping | list | tuple):
        return _container(value, path, depth - 1)
    if value is None or isinstance(value, bool):
        return value
    return _number(value, path)


def _container(
    value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], path: _Path, depth: int
) -> Any:
    if depth <= 0:
        raise InvalidEvent(
            f"{_format_path(path)} is nested deeper than {MAX_DEPTH} levels; flatten it"
        )
    if isinstance(value, Mapping):
        return _mapping(value, path, depth)
    return [_value(inner, (path, number), depth) for number, inner in enumerate(value)]


def _number(value: object, path: _Path) -> int | float:
    """Return a number as a plain int or float: subclasses, such as numpy's, cannot be encoded."""
    if isinstance(value, int) and _MIN_INTEGER <= value <= _MAX_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise InvalidEvent(
        f"{_format_path(path)} cannot be written as JSON: {_kind(value)}; "
        "convert it to text, a number, a list or a mapping first"
    )


def _kind(value: object) -> str:
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, int):
        return "an integer of more than 64 bits"
    return f"a {type(value).__name__}"


def _format_path(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[:_KEY_SHOWN]}")
    return "messages" + "".join(reversed(steps))


def check_id(what: str, value: str) -> str:
    """Return an id as it is; `InvalidEvent`: no text, empty, over 512 characters, or with NUL."""
    if not isinstance(value, str):
        raise InvalidEvent(f"`{what}` takes a text, not this {type(value).__name__}")
    if not value or len(value) > _MAX_ID or "\x00" in value:
        raise InvalidEvent(f"{what}: {value[:40]!r} must have 1 to {_MAX_ID} characters and no NUL")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidEvent(f"{what}: {value[:40]!r} is not Unicode text") from error
    return value
