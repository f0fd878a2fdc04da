"""The end of the history that Redis still holds, read under a plan."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, cast

from redis import Redis
from redis.exceptions import RedisError

from memorybus.archive.format.manifest import Place
from memorybus.errors import CorruptEnvelope
from memorybus.events import Envelope, Position, UnknownEvent
from memorybus.log.entry import DAMAGED, OMITTED, LoggedEvent, logged, number_of
from memorybus.log.stream import read_entries
from memorybus.query.filter import EventFilter
from memorybus.query.query import row_of
from memorybus.redis.connect import translated
from memorybus.redis.keys import Keys
from memorybus.wire.codec import PACKED, Decoder, are_plausible
from memorybus.wire.header import HeaderReader

_RESENT = {b"e": False, b"r": True}
"""How a body is named, and whether Redis may have had the event before."""

_FIELDS = 4
"""``n``, a number, ``e`` or ``r``, a body."""

_DIGITS = 15

_MANY = 512
"""Entries that are looked at together where those before were strangers."""

_XREVRANGE = b"XREVRANGE"
"""As bytes, redis-py leaves the reply as it comes (see `memorybus.log.stream`)."""

Entry: TypeAlias = tuple[bytes, list[bytes]]


class Page(NamedTuple):
    """What a read found.

    Attributes:
        events: in order.
        numbers: those that their entries carry themselves; 0 for a stranger's.
    """

    events: list[LoggedEvent]
    numbers: Sequence[int]

    def follows(self, after_n: int) -> bool:
        """Say whether all of it are entries of ours that follow a number, and each other."""
        dense = range(after_n + 1, after_n + 1 + len(self.numbers))
        return self.numbers == dense or list(self.numbers) == list(dense)

    @property
    def first(self) -> int:
        """The first number of ours, 0 for none."""
        return next(filter(None, self.numbers), 0)

    def leading(self, after_n: int) -> list[LoggedEvent]:
        """Return the events before the first hole, and strangers' entries with what follows them.

        Where numbers are missing they come alone: those may have stood on either side of them.
        """
        if not self.first or self.follows(self.numbers[0] - 1):
            return self.events
        if not self.numbers[0] and self.first > after_n + 1:
            return self.events[: self.numbers.index(self.first)]
        end = last = 0
        for index, n in enumerate(self.numbers):
            if n and last and n != last + 1:
                break
            end, last = (index + 1, n) if n else (end, last)
        return self.events[:end]


class LogPart:
    """Reads the log as a sieve lets it pass. Use from one thread.

    Every method raises `LogUnavailable` without Redis, and `ForeignKey` if the key is not ours.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys
        self._decoder = Decoder()
        self._headers = HeaderReader(self._decoder)

    def read(
        self, partition: int, after: str, count: int, after_n: int, sieve: EventFilter
    ) -> Page:
        """Return up to `count` events after a place; what does not pass is left out in place."""
        key = self._keys.log(partition)
        found = self._asked(lambda: read_entries(self._redis, key, f"({after}", count=count), key)
        read = self._whole if sieve.takes_all else self._sifted
        return read(partition, found, after_n, sieve)

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
        found: list[Entry] = self._asked(lambda: ask(*words), key)
        return found

    def last(self, partition: int, bound: str) -> Place | None:
        """Return the last entry of ours down from a bound (see `back`), whatever others wrote."""
        return _first_own(bound, lambda at, count: self.back(partition, at, count))

    def first(self, partition: int, bound: str) -> Place | None:
        """Return the first entry of ours up from a bound, whatever others wrote."""
        key, redis = self._keys.log(partition), self._redis

        def ask(at: str, count: int) -> list[Entry]:
            found: list[Entry]
            found = self._asked(lambda: read_entries(redis, key, at, count=count), key)
            return found

        return _first_own(bound, ask)

    def _whole(
        self, partition: int, found: Sequence[Entry], after_n: int, sieve: EventFilter
    ) -> Page:
        """Decode all entries at once, which takes half the time of one by one."""
        columns = _columns(found)
        if columns is None:
            return self._sifted(partition, found, after_n, sieve)
        numbers, resent, bodies = columns
        envelopes = self._decoded(bodies)
        if envelopes is None:
            return self._sifted(partition, found, after_n, sieve)
        entries = [entry.decode() for entry, _ in found]
        places = map(Position, repeat(partition), entries, numbers)
        return Page(list(map(LoggedEvent, places, envelopes, resent)), numbers)

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
        self, partition: int, found: Sequence[Entry], after_n: int, sieve: EventFilter
    ) -> Page:
        events, numbers = list[LoggedEvent](), list[int]()
        for entry, fields in found:
            n = number_of(fields) or 0
            place = Position(partition, entry.decode(), n or after_n + 1)
            event = self._seen(place, fields, sieve) if n else None
            events.append(event or self._judged(place, fields, sieve))
            numbers.append(n)
            after_n = events[-1].position.n
        return Page(events, numbers)

    def _seen(
        self, place: Position, fields: Sequence[bytes], sieve: EventFilter
    ) -> LoggedEvent | None:
        """Decode an entry of ours no further than it takes to leave it out.

        None if it has to be decoded whole to be judged.
        """
        if not sieve.passes(place.n):
            return LoggedEvent(place, OMITTED["filtered"])
        row = self._headers.row(fields[3]) if sieve.needs_row else None
        if row is None:
            return None
        why = sieve.omission(row)
        if why is not None:
            return LoggedEvent(place, OMITTED[why])
        return self._judged(place, fields, sieve)

    def _judged(self, place: Position, fields: Sequence[bytes], sieve: EventFilter) -> LoggedEvent:
        """Decode an entry whole: what is damaged may be another row than its header says."""
        event = logged(place.partition, place.entry, fields, place.n, self._decoder)
        return sifted(event, sieve)

    def sealed(self, partition: int) -> int:
        """Return the number up to which the log may be trimmed, as Redis says; 0 for none."""
        key = self._keys.state(partition)
        found = self._asked(lambda: self._redis.hget(key, "sealed"), key)
        return int(found) if found and found.isdigit() else 0

    def _asked(self, ask: Any, where: str) -> Any:
        try:
            return ask()
        except (RedisError, OSError) as error:
            raise translated(error, where) from error


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


def is_stray(event: LoggedEvent) -> bool:
    """Say whether an entry carries no number of its own: it is not ours.

    One that is damaged still carries it (see `logged`).
    """
    what = event.envelope.event
    if not isinstance(what, UnknownEvent) or what.wire_version:
        return False
    return not what.name.startswith(DAMAGED)
