"""Refuses, by the field's name, what readers of an envelope could not read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

import msgspec

from memorybus.errors import InvalidEvent
from memorybus.events import (
    EVENT_TYPES,
    LATEST,
    AnyEvent,
    Envelope,
    Message,
    ModelUsage,
    Scope,
    SessionRef,
    ShownMemories,
)
from memorybus.msgspec_types import prepared
from memorybus.wire.codec import is_plausible

_S = TypeVar("_S", bound=msgspec.Struct)

NOT_AS_GIVEN = (
    UnicodeEncodeError, TypeError, OverflowError, RecursionError,
    msgspec.MsgspecError,
)  # fmt: skip
"""What encoding and decoding raise for a value that does not fit."""

_PARTS: Final[Mapping[Any, tuple[type[msgspec.Struct], ...]]] = MappingProxyType({
    Scope: (Scope,), SessionRef: (SessionRef,), AnyEvent: EVENT_TYPES,
})  # fmt: skip
"""The structs that a field of an envelope takes, by the field's type."""

_USAGES: Final = tuple[ModelUsage, ...]

_TAKES: Final[Mapping[Any, str]] = MappingProxyType({
    int: "an integer of 64 bits", str: "a text", bool: "True or False",
    Scope: "a Scope", SessionRef: "a SessionRef", AnyEvent: "an event of `memorybus.events`",
    float: "a number", _USAGES: "a list of `ModelUsage`",
    dict[str, str]: "texts by name", dict[str, Any]: "JSON values by name",
    tuple[ShownMemories, ...]: "a list of ShownMemories", bytes: "bytes",
    tuple[str, ...]: "a list of texts", tuple[Message, ...]: "a list of JSON objects",
})  # fmt: skip


def whole(field: str, value: object) -> int:
    """Return an integer that was given as an integer or a whole float; else `InvalidEvent`."""
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise refusal(field, int, value)


def refusal(field: str, kind: Any, value: object) -> InvalidEvent:
    """Return the error for a value that a field does not take; it names the value's type only."""
    takes = _TAKES.get(kind) or f"one of {', '.join(get_args(kind))}"
    return InvalidEvent(f"`{field}` takes {takes}, not this {type(value).__name__}")


def exact_envelope(envelope: Envelope) -> Envelope:
    """Return an envelope in which every value has exactly the type of its field."""
    exact = _exact(envelope, "")
    if not 0 <= exact.at <= LATEST:
        raise InvalidEvent(
            f"`at` is {exact.at}; it must be milliseconds since 1970, up to the year 9999"
        )
    if not is_plausible(exact):
        raise InvalidEvent(
            f"`id`, the event's id, must be 32 hex digits in lower case, not {len(exact.id)} "
            "characters of another kind"
        )
    if exact.v != exact.event.version:
        raise InvalidEvent(f"`v` is {exact.v}, and the event's version is {exact.event.version}")
    return exact


def _exact(struct: _S, prefix: str) -> _S:
    return type(struct)(
        **{
            field.name: exact_value(getattr(struct, field.name), field.type, prefix + field.name)
            for field in msgspec.structs.fields(struct)
        }
    )


def exact_value(value: Any, kind: Any, field: str) -> Any:
    if parts := _PARTS.get(kind):
        if type(value) not in parts:
            raise refusal(field, kind, value)
        return _exact(value, f"{type(value).__name__}.")
    if kind == _USAGES:
        if type(value) not in (list, tuple) or {type(each) for each in value} - {ModelUsage}:
            raise refusal(field, kind, value)
        return tuple(_exact(each, f"{ModelUsage.__name__}.") for each in value)
    if kind is int:
        value = whole(field, value)
    try:
        read = _read_back(value, kind)
        # msgspec writes some strangers as texts, such as a UUID; and NaN differs from itself.
        same = read == (value if isinstance(read, str) else _read_back(read, kind))
    except NOT_AS_GIVEN:
        same = False
    if not same:
        raise refusal(field, kind, value)
    return read


def _read_back(value: object, kind: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=prepared(kind))
