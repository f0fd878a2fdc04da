"""The end of the history that Redis still holds, read under a plan."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, cast

from redis import Redis
from redis.exceptions import RedisError

from memorybus.codec import PACKED, Decoder, are_plausible
from memorybus.errors import CorruptEnvelope
from memorybus.events import Envelope, Position
from memorybus.glimpse import Glimpses
from memorybus.keys import Keys
from memorybus.links import translated
from memorybus.log import read_entries
from memorybus.logged import OMITTED, LoggedEvent, logged
from memorybus.query import row_of
from memorybus.sieve import Sieve

_RESENT = {b"e": False, b"r": True}
"""How a body is named, and whether Redis may have had the event before."""

_FIELDS = 4
"""``n``, a number, ``e`` or ``r``, a body."""

_DIGITS = 15

Entry: TypeAlias = tuple[bytes, list[bytes]]


class Page(NamedTuple):
    """What a read found, and the number that its first entry carries itself; 0 for none."""

    events: list[LoggedEvent]
    first_n: int


class LogPart:
    """Reads the log as a sieve lets it pass. Use from one thread.

    Every method raises `LogUnavailable` without Redis, and `ForeignKey` if the key is not ours.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys
        self._decoder = Decoder()
        self._glimpses = Glimpses(self._decoder)

    def read(self, partition: int, after: str, count: int, after_n: int, sieve: Sieve) -> Page:
        """Return up to `count` events after a place; what does not pass is left out in place."""
        key = self._keys.log(partition)
        found = self._asked(lambda: read_entries(self._redis, key, f"({after}", count=count), key)
        read = self._whole if sieve.open else self._sifted
        first_n = _own_number(found[0][1]) if found else 0
        return Page(read(partition, found, after_n, sieve), first_n)

    def _whole(
        self, partition: int, found: Sequence[Entry], after_n: int, sieve: Sieve
    ) -> list[LoggedEvent]:
        """Decode all entries at once, which takes half the time of one by one."""
        columns = _columns(found)
        if columns is None:
            return self._sifted(partition, found, after_n, sieve)
        numbers, resent, bodies = columns
        envelopes = self._decoded(bodies)
        if envelopes is None:
            return self._sifted(partition, found, after_n, sieve)
        entries = [entry.decode() for entry, _ in found]
        return list(
            map(LoggedEvent, map(Position, repeat(partition), entries, numbers), envelopes, resent)
        )

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
        self, partition: int, found: Sequence[Entry], after_n: int, sieve: Sieve
    ) -> list[LoggedEvent]:
        events: list[LoggedEvent] = []
        for entry, fields in found:
            event = self._seen(partition, entry.decode(), fields, after_n + 1, sieve)
            after_n = event.position.n
            events.append(event)
        return events

    def _seen(
        self, partition: int, entry: str, fields: Sequence[bytes], next_n: int, sieve: Sieve
    ) -> LoggedEvent:
        """Decode an entry no further than it takes to leave it out."""
        n = _own_number(fields)
        if n and not sieve.passes(n):
            return LoggedEvent(Position(partition, entry, n), OMITTED["filtered"])
        row = self._glimpses.row(fields[3]) if n and sieve.looks else None
        if row is None:
            event = logged(partition, entry, fields, next_n, self._decoder)
            return sifted(event, sieve)
        why = sieve.holds(row)
        if why is not None:
            return LoggedEvent(Position(partition, entry, n), OMITTED[why])
        return logged(partition, entry, fields, next_n, self._decoder)

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


def sifted(event: LoggedEvent, sieve: Sieve) -> LoggedEvent:
    """Return an event, or its place with the content left out; pure."""
    position = event.position
    if not sieve.passes(position.n):
        return LoggedEvent(position, OMITTED["filtered"])
    why = sieve.holds(row_of(event.envelope)) if sieve.looks else None
    return event if why is None else LoggedEvent(position, OMITTED[why])


def _columns(found: Sequence[Entry]) -> tuple[range, list[bool], Sequence[bytes]] | None:
    """Return the numbers, marks and bodies of entries that are ours and follow each other."""
    try:
        names, raw, kinds, bodies = zip(*[fields for _, fields in found], strict=True)
        resent = [_RESENT[kind] for kind in kinds]
        first, known = _own_number(found[0][1]), list(map(int, raw))
    except (KeyError, ValueError):  # other fields, or no entry at all
        return None
    numbers = range(first, first + len(found))
    ours = first and known == list(numbers) and b"".join(raw).isdigit() and set(names) == {b"n"}
    return (numbers, resent, bodies) if ours else None


def _own_number(fields: Sequence[bytes]) -> int:
    """Return the number that an entry of our shape carries, else 0."""
    if len(fields) != _FIELDS or fields[0] != b"n" or fields[2] not in _RESENT:
        return 0
    n = fields[1]
    return int(n) if n.isdigit() and len(n) <= _DIGITS else 0
