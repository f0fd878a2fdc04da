"""The part of the history that Redis still holds, read as a plan wants it."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeAlias, cast

import msgspec
from redis import Redis

from memorybus.errors import CorruptEnvelope
from memorybus.events import Envelope, Position
from memorybus.log.entry import OMITTED, LoggedEvent, Place, decode_entry, number_of
from memorybus.log.stream import read_entries
from memorybus.query.filter import EventFilter
from memorybus.query.query import row_of
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import Keys
from memorybus.wire.codec import PACKED, Decoder, are_plausible
from memorybus.wire.header import HeaderReader

_RESENT = {b"e": False, b"r": True}
"""How a body is named, and whether Redis may have had the event before."""

_MANY = 512
"""Entries that are looked at together where the first one is not ours."""

_XREVRANGE = b"XREVRANGE"
"""As bytes, redis-py leaves the reply as it comes (see `memorybus.log.stream`)."""

Entry: TypeAlias = tuple[bytes, list[bytes]]


class EventPage(msgspec.Struct, frozen=True):
    """Some events in a row.

    Attributes:
        events: in order; what the reader did not want comes as an `Omitted`, so that numbers stay
            dense. None means that nothing follows.
        cut_short: whether there may be more behind the last of them.
    """

    events: list[LoggedEvent]
    cut_short: bool = False

    def follows(self, after_n: int) -> bool:
        """Say whether the events' numbers follow a number, and each other."""
        dense = range(after_n + 1, after_n + 1 + len(self.events))
        return [event.position.n for event in self.events] == list(dense)

    def upto_a_hole(self) -> "EventPage":
        """Return the events whose numbers follow each other."""
        if not self.events or self.follows(self.events[0].position.n - 1):
            return self
        first = self.events[0].position.n
        end = next(i for i, one in enumerate(self.events) if one.position.n != first + i)
        return EventPage(self.events[:end], cut_short=True)


class LogReader:
    """Reads the log as a filter lets it pass. Use from one thread.

    Entries that somebody else wrote into a stream are dropped here: they are no events. Every
    method raises `LogUnavailable` without Redis, and `ForeignKey` if the key is not ours.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys
        self._decoder = Decoder()
        self._headers = HeaderReader(self._decoder)

    def read(self, partition: int, after: str, count: int, sieve: EventFilter) -> EventPage:
        """Return up to `count` events after a place; what does not pass is left out in place."""
        read = self._whole if sieve.takes_all else self._sifted
        events, more = list[LoggedEvent](), True
        while more and not events:
            found = self._up(partition, f"({after}", count)
            events, more = read(partition, found, sieve), len(found) == count
            after = found[-1][0].decode() if found else after
        return EventPage(events, more)

    def back(self, partition: int, bound: str, count: int) -> list[Entry]:
        """Return up to `count` entries as they stand, newest first, from a bound down.

        Args:
            partition: which one.
            bound: an entry's id, ``(`` before it leaves it out, or ``+``.
            count: at most so many.
        """
        key = self._keys.log(partition)
        ask: Any = self._redis.execute_command
        words = (_XREVRANGE, key, bound, "-", "COUNT", count)
        found: list[Entry] = ask_redis(lambda: ask(*words), key)
        return found

    def last(self, partition: int, bound: str) -> Place | None:
        """Return the place of the last event down from a bound (see `back`); None if none is."""
        return _first_own(bound, lambda at, count: self.back(partition, at, count))

    def first(self, partition: int, bound: str) -> Place | None:
        """Return the place of the first event up from a bound; None if there is none."""
        return _first_own(bound, lambda at, count: self._up(partition, at, count))

    def _up(self, partition: int, bound: str, count: int) -> list[Entry]:
        key = self._keys.log(partition)
        found: list[Entry]
        found = ask_redis(lambda: read_entries(self._redis, key, bound, count=count), key)
        return found

    def _whole(
        self, partition: int, found: Sequence[Entry], sieve: EventFilter
    ) -> list[LoggedEvent]:
        """Decode all entries at once, which takes half the time of one by one."""
        columns = _columns(found)
        if columns is None:
            return self._sifted(partition, found, sieve)
        numbers, resent, bodies = columns
        envelopes = self._decoded(bodies)
        if envelopes is None:
            return self._sifted(partition, found, sieve)
        entries = [entry.decode() for entry, _ in found]
        places = map(Position, repeat(partition), entries, numbers)
        return list(map(LoggedEvent, places, envelopes, resent))

    def _decoded(self, bodies: Sequence[bytes]) -> list[Envelope] | None:
        """Return the envelopes, None if any of them has to be looked at by itself."""
        unpacked = self._decoder.unpacked
        try:
            plain = [unpacked(body) if body[:1] == PACKED else body for body in bodies]
        except CorruptEnvelope:
            return None
        envelopes = cast("list[Envelope]", self._decoder.decode_all(plain))
        return envelopes if all(envelopes) and are_plausible(envelopes) else None

    def _sifted(
        self, partition: int, found: Sequence[Entry], sieve: EventFilter
    ) -> list[LoggedEvent]:
        seen = (self.sifted(partition, entry, fields, sieve) for entry, fields in found)
        return [event for event in seen if event is not None]

    def sifted(
        self, partition: int, entry: bytes, fields: Sequence[bytes], sieve: EventFilter
    ) -> LoggedEvent | None:
        """Return an entry as an event, or its place with the content left out.

        None for an entry that somebody else wrote. What is left out is decoded no further than it
        takes to know that.
        """
        n = number_of(fields)
        return self._seen(Position(partition, entry.decode(), n), fields, sieve) if n else None

    def _seen(self, place: Position, fields: Sequence[bytes], sieve: EventFilter) -> LoggedEvent:
        """Decode an entry of ours; one that is left out no further than it takes to know that."""
        if not sieve.passes(place.n):
            return LoggedEvent(place, OMITTED["filtered"])
        row = self._headers.row(fields[3]) if sieve.needs_row else None
        why = sieve.omission(row) if row is not None else None
        if why is not None:
            return LoggedEvent(place, OMITTED[why])
        # Judged again when it is decoded whole: damaged bytes may make another row then.
        event = decode_entry(place.partition, place.entry, fields, self._decoder)
        return sifted(cast("LoggedEvent", event), sieve)

    def sealed(self, partition: int) -> int:
        """Return the number up to which the log may be trimmed, as Redis says; 0 for none."""
        key = self._keys.state(partition)
        found = ask_redis(lambda: self._redis.hget(key, "sealed"), key)
        return int(found) if found and found.isdigit() else 0


def sifted(event: LoggedEvent, sieve: EventFilter) -> LoggedEvent:
    """Return an event, or its place with the content left out; pure."""
    position = event.position
    if not sieve.passes(position.n):
        return LoggedEvent(position, OMITTED["filtered"])
    why = sieve.omission(row_of(event.envelope)) if sieve.needs_row else None
    return event if why is None else LoggedEvent(position, OMITTED[why])


def _columns(found: Sequence[Entry]) -> tuple[range, list[bool], Sequence[bytes]] | None:
    """Return the numbers, marks and bodies of entries that are ours and follow each other."""
    try:
        names, raw, kinds, bodies = zip(*[fields for _, fields in found], strict=True)
        resent = [_RESENT[kind] for kind in kinds]
        first, known = number_of(found[0][1]) or 0, list(map(int, raw))
    except (KeyError, ValueError):  # other fields, or no entry at all
        return None
    numbers = range(first, first + len(found))
    ours = first and known == list(numbers) and b"".join(raw).isdigit() and set(names) == {b"n"}
    return (numbers, resent, bodies) if ours else None


def _first_own(bound: str, ask: Callable[[str, int], list[Entry]]) -> Place | None:
    """Return the first entry of ours of what is asked for: one, and where that is not, many."""
    count = 1
    while found := ask(bound, count):
        for entry, fields in found:
            if n := number_of(fields):
                return Place(entry.decode(), n)
        bound, count = f"({found[-1][0].decode()}", _MANY
    return None
