"""What is published is what every reader gets; what none could read is refused by its field."""

import datetime as dt
import decimal
import enum
import uuid
from typing import Any

import msgspec
import pytest
from helpers.stories.samples import SAMPLES, envelope
from memorybus.errors import InvalidEvent
from memorybus.events import (
    Envelope,
    Event,
    Omitted,
    Scope,
    SessionRef,
    TurnCompleted,
    UnknownEvent,
)
from memorybus.ids import checksum
from memorybus.outbox.publisher import Writer
from memorybus.wire.codec import Decoder


class _Markup(str):
    """A text of a class of its own, as template engines make them."""

    __slots__ = ()


class _Action(enum.StrEnum):
    ADD = "add"


class _Stranger(Event, frozen=True, kw_only=True):
    """An event that this release does not know."""


class _Impostor(Event, frozen=True, kw_only=True, tag="TurnCompleted"):
    """An event of another program under a name of ours."""


PLAIN = (
    None, True, False, 0, 3, -1, 1 << 70, 3.0, -0.0, 3.5, float("nan"), float("inf"), 1e300,
    "", "3", "add", "my secret", "my secret \ud800", b"", b"x", object(), Event, 7j,
    _Markup("my secret"), _Action.ADD, uuid.UUID(int=7), decimal.Decimal(3),
    dt.datetime.fromtimestamp(7, dt.UTC), Scope(), SessionRef("s", "s"),
    TurnCompleted(), _Stranger(), _Impostor(), Omitted(),
    UnknownEvent(name="x", wire_version=9, raw=b"\x80"),
)  # fmt: skip
CONTAINERS = [(), [], {}, {1, 2}, {1: 2}, *([one] for one in PLAIN), *({"k": one} for one in PLAIN)]
ODD = [*PLAIN, *CONTAINERS, *([one] for one in CONTAINERS)]
"""Values that programs give by mistake: each of them is wrong for most fields."""


def _paths(struct: Any, *above: str) -> list[tuple[str, ...]]:
    """Return the path of every field of a struct, and of the structs in it."""
    paths: list[tuple[str, ...]] = []
    for name in struct.__struct_fields__:
        inner = getattr(struct, name)
        paths.append((*above, name))
        paths += _paths(inner, *above, name) if isinstance(inner, msgspec.Struct) else []
    return paths


def _with(struct: Any, path: tuple[str, ...], value: object) -> Any:
    """Return a copy of a struct with another value at a path."""
    first, *rest = path
    inner = _with(getattr(struct, first), tuple(rest), value) if rest else value
    return msgspec.structs.replace(struct, **{first: inner})


def _at(struct: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        struct = getattr(struct, name)
    return struct


def _refusal(writer: Writer, odd: Envelope) -> str:
    """Return why an envelope is refused; "" if it is accepted."""
    try:
        writer.write(odd)
    except InvalidEvent as error:
        return str(error)
    return ""


PLACES = [
    pytest.param(envelope(event), path, id=f"{type(event).__name__}-{'.'.join(path)}")
    for number, event in enumerate(SAMPLES)
    for path in _paths(envelope(event))
    if number == 0 or path[:1] == ("event",)  # the rest of the envelope is the same for all
]


@pytest.mark.parametrize(("whole_envelope", "path"), PLACES)
@pytest.mark.slow(reason="thousands of odd values")
def test_what_is_accepted_is_what_is_read(whole_envelope, path):
    """G1: a value that readers would not get as it was given is refused by its field."""
    writer = Writer(1 << 20)
    for value in ODD:
        odd = _with(whole_envelope, path, value)
        if refused := _refusal(writer, odd):
            assert f"`{path[-1]}`" in refused or f".{path[-1]}`" in refused
            assert "secret" not in refused
            continue
        accepted, body, mark = writer.write(odd)
        assert Decoder().decode(body) == accepted
        assert mark == checksum(msgspec.msgpack.encode(accepted.event))
        found = _at(accepted, path)
        assert found == value or msgspec.json.encode(found) == msgspec.json.encode(value)
        assert isinstance(value, float | type(found)) or not isinstance(found, str | int)


@pytest.mark.parametrize("event_id", ["AB" * 16, "ab " * 16, "ab" * 15, "ab" * 17, "gh" * 16])
def test_an_id_of_another_form_is_refused(event_id):
    """G1: an id that readers take for damage is refused when it is published."""
    with pytest.raises(InvalidEvent, match="32 hex digits in lower case"):
        Writer(1 << 20).write(_with(envelope(SAMPLES[0]), ("id",), event_id))


def test_no_type_of_another_program_is_accepted():
    """G6: an event that readers would park as unknown is refused when it is published."""
    for event in (_Stranger(), _Impostor(), Omitted()):
        with pytest.raises(InvalidEvent, match="`event` takes an event of"):
            Writer(1 << 20).write(_with(envelope(SAMPLES[0]), ("event",), event))
