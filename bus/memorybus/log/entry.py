"""Turns entries of the log into events, including unreadable ones, so that they are parked (G6)."""

from collections.abc import Mapping, Sequence

import msgspec

from memorybus.errors import CorruptEnvelope
from memorybus.events import (
    Envelope,
    Omission,
    Omitted,
    Position,
    Scope,
    SessionRef,
    UnknownEvent,
)
from memorybus.ids import derived_id
from memorybus.wire.codec import Decoder

_FIELDS = 4  # the names and values of an entry: ``n``, a number, ``e`` or ``r``, a body
DAMAGED_PREFIX = CorruptEnvelope.__name__
"""Prefix of the name of an `UnknownEvent` made of an entry of our form that has no envelope."""

EntryMoment = tuple[int, int]
"""An entry's milliseconds and its number within them: the order of entries."""

_LAST_SEQUENCE = (1 << 64) - 1
_DIGITS = 15  # the most digits of a dense number: Lua counts to 2**53


def _omitted_envelope(why: Omission) -> Envelope:
    return Envelope(
        id="0" * 32,
        key="",
        scope=Scope(),
        session=SessionRef(id="", root=""),
        at=0,
        event=Omitted(why=why),
    )


OMITTED_ENVELOPES: Mapping[Omission, Envelope] = {
    why: _omitted_envelope(why) for why in ("volatile", "filtered", "retention", "forgotten")
}
"""Placeholders for events that a reader leaves out: one envelope for each reason."""


class Place(msgspec.Struct, frozen=True):
    """A place in a partition."""

    entry: str  # the id of the stream's entry
    n: int  # its dense number


class LoggedEvent(msgspec.Struct, frozen=True, gc=False):
    """An envelope and its place in the log."""

    position: Position  # its place
    envelope: Envelope  # the event
    # whether Redis may have had it before and lost it, so that a lane may have applied it already
    # (G4)
    resent: bool = False


def decode_entry(
    partition: int, entry: str, fields: Sequence[bytes], decoder: Decoder
) -> LoggedEvent | None:
    """Return an entry as an event, `UnknownEvent` if unreadable (G6), None if not ours."""
    n = number_of(fields)
    if n is None:
        return None
    position = Position(partition, entry, n)
    try:
        return LoggedEvent(position, decoder.decode(fields[3]), fields[2] == b"r")
    except CorruptEnvelope as error:
        return LoggedEvent(
            position, _unreadable_envelope(position, fields[3], f"{DAMAGED_PREFIX}: {error}")
        )


def parse_entry_id(entry: str) -> EntryMoment:
    """Return an entry id's milliseconds and its number within them."""
    ms, _, sequence = entry.partition("-")
    return int(ms), int(sequence or 0)


def entry_ms(entry: str) -> int:
    """Return when an entry entered the log: Redis's time, milliseconds since the Unix epoch."""
    return int(entry.partition("-")[0])


def previous_entry_id(entry: str) -> str:
    ms, sequence = parse_entry_id(entry)
    return f"{ms}-{sequence - 1}" if sequence else f"{ms - 1}-{_LAST_SEQUENCE}"


def number_of(fields: Sequence[bytes]) -> int | None:
    """Return the number of an entry of ours; None if another program wrote the entry.

    Ours have one form: ``n``, a number from 1, ``e`` or ``r``, a body. `shared/log_entries.lua`
    checks the same form.
    """
    if len(fields) != _FIELDS or fields[0] != b"n" or fields[2] not in (b"e", b"r"):
        return None
    number = int(fields[1]) if fields[1].isdigit() and len(fields[1]) <= _DIGITS else 0
    return number or None


def _unreadable_envelope(position: Position, body: bytes, name: str) -> Envelope:
    """Return an envelope for an entry whose body is no event; `name` says what is wrong with it."""
    place = (str(position.partition), position.entry)
    return Envelope(
        id=derived_id("stray", *place),
        key=f"stray:{position.entry}",
        scope=Scope(),
        session=SessionRef(id="", root=""),
        at=entry_ms(position.entry),
        event=UnknownEvent(name=name, wire_version=0, raw=body),
    )
