"""Whether the archive has what the log has: only then may the log be trimmed up to its end (G7).

A partition's archive may end behind entries that it lacks. Another Redis that began as a copy of
this one archives into the same place; or Redis came back from an older copy with a clock that is
behind, and takes new events in at places that were sealed already. That an entry's place lies
before the archive's end is therefore no proof: place, number and event of each are compared.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, cast

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.archive.rows import SealedRow
from memorybus.errors import ArchiveDiffers
from memorybus.log.entry import Place, decode_entry, number_of, parse_entry_id
from memorybus.log.stream import START
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys, lane_name
from memorybus.wire.codec import Decoder

_PAGE = 500
_XRANGE, _XREVRANGE = b"XRANGE", b"XREVRANGE"
"""As bytes, so that the client leaves the fields of an entry as they stand."""


class SealedPlaces(Protocol):
    """What comparing needs of the archive (`memorybus.archive.archive.Archive`)."""

    @property
    def where(self) -> str:
        """Where it is."""
        ...

    def places(self, partition: int, first: str, last: str) -> Iterator[SealedRow]:
        """Yield the rows from one entry to another."""
        ...


class Agreement(msgspec.Struct, frozen=True):
    """How far log and archive were compared.

    Attributes:
        upto: the log's last entry that the archive has, with all before it; "0-0" if there is none.
        lacking: the one behind it, if the archive ends behind that and lacks it; else None.
    """

    upto: str
    lacking: Place | None = None


class _Entry(msgspec.Struct, frozen=True):
    entry: str
    n: int | None
    fields: Sequence[bytes]


class Comparing:
    """Compares a log with its archive. Use from one thread; changes nothing.

    Every method raises `LogUnavailable` without Redis, and what the archive raises.
    """

    def __init__(self, redis: Redis, keys: Keys, archive: SealedPlaces) -> None:
        """Use the log's Redis, and its archive."""
        self._redis = redis
        self._keys = keys
        self._archive = archive
        self._decoder = Decoder()

    def check(self, partition: int, noted: Place, end: Place) -> str:
        """Return the log's last entry up to the archive's end: that and all before it are sealed.

        Args:
            partition: which.
            noted: what this log knows to be sealed, which was compared when it was noted.
            end: where the archive ends.

        Raises:
            ArchiveDiffers: the archive lacks one of them.
        """
        found = self.compared(partition, noted, end)
        if found.lacking is not None:
            raise ArchiveDiffers(_why(partition, self._archive.where, found.lacking, end))
        return found.upto

    def compared(self, partition: int, noted: Place, end: Place) -> Agreement:
        """Compare what the log has up to the archive's end; see `check`.

        As a rule that is what was noted, and costs one read of one entry.
        """
        holds = self._holds(partition, noted, end)
        if holds and noted == end:
            return Agreement(end.entry)
        return self._entries_compared(partition, noted.entry if holds else START, end)

    def _holds(self, partition: int, noted: Place, end: Place) -> bool:
        """Say whether all that the log has up to what was noted is in this archive."""
        last = self._last(partition, noted.entry)
        if last is not None and last > noted.n:
            return False  # it came later, at a place before: its server's clock went back
        if noted == end:
            return True
        row = next(self._archive.places(partition, noted.entry, noted.entry), None)
        return row is not None and row.n == noted.n

    def _last(self, partition: int, upto: str) -> int | None:
        """Return the number of our last entry up to a place, None if there is none."""
        count = 1
        while page := self._asked(_XREVRANGE, partition, upto, "-", count):
            numbers = [one.n for one in page if one.n is not None]
            if numbers:
                return numbers[0]
            upto, count = f"({page[-1].entry}", _PAGE
        return None

    def _entries_compared(self, partition: int, upto: str, end: Place) -> Agreement:
        entries = self._entries(partition, upto, end.entry)
        first = next(entries, None)
        if first is None:
            return Agreement(upto)
        rows = self._archive.places(partition, first.entry, end.entry)  # nothing before is needed
        row = next(rows, None)
        for one in chain((first,), entries):
            while row is not None and parse_entry_id(row.entry) < parse_entry_id(one.entry):
                row = next(rows, None)
            if one.n is not None and not self._is_same(partition, one, row):
                return Agreement(upto, Place(one.entry, one.n))
            upto = one.entry
        return Agreement(upto)

    def _is_same(self, partition: int, one: _Entry, row: SealedRow | None) -> bool:
        if row is None or (one.entry, one.n) != (row.entry, row.n):
            return False
        event = decode_entry(partition, one.entry, one.fields, self._decoder)
        return event is not None and event.envelope.id == row.id

    def _entries(self, partition: int, after: str, last: str) -> Iterator[_Entry]:
        while page := self._asked(_XRANGE, partition, f"({after}", last, _PAGE):
            yield from page
            after = page[-1].entry

    def _asked(
        self, command: bytes, partition: int, first: str, last: str, count: int
    ) -> list[_Entry]:
        key, ask = self._keys.log(partition), cast("Any", self._redis).execute_command
        try:
            found: list[tuple[bytes, list[bytes]]] = ask(command, key, first, last, "COUNT", count)
        except (RedisError, OSError) as error:
            raise translate_redis_error(error, key) from error
        return [_Entry(entry.decode(), number_of(fields), fields) for entry, fields in found]


def _why(partition: int, where: str, lacking: Place, end: Place) -> str:
    return (
        f"partition {lane_name(partition)}: the archive at {where} goes on to event {end.n}, but "
        f"does not have event {lacking.n} that this log has at {lacking.entry}: another Redis that "
        f"began as a copy of this one archives there too, or this one came back from an older copy "
        f"with its clock behind. Nothing is sealed or trimmed. Let each Redis have its own "
        f"`archive` (stop the copy, or give it a copy of this directory); then, if what is there "
        f"may stay: memorybus archive repair --execute; see docs/history.md, "
        f'"Two logs, one archive"'
    )
