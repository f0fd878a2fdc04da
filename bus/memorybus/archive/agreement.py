"""Compares the archive with the log: only what the archive has may be trimmed (G7).

A partition's archive may end after entries that it lacks. This happens when another Redis, which
began as a copy of this one, archives into the same place. It also happens when Redis was restored
from an older copy with a clock that is behind: it then stores new events at places that were sealed
already. So an entry is not proved to be sealed because its place lies before the archive's end. The
place, the number and the event of each entry are compared.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec
from redis import Redis

from memorybus.archive.rows import SealedRow
from memorybus.log.entry import Place, decode_entry, number_of, parse_entry_id
from memorybus.log.stream import START
from memorybus.redis.connect import redis_errors
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Decoder

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

_PAGE = 500
_XRANGE, _XREVRANGE = b"XRANGE", b"XREVRANGE"
"""The commands as bytes: redis-py then returns an entry's fields without parsing them."""


class Agreement(msgspec.Struct, frozen=True):
    """How far log and archive were compared."""

    upto: str  # the last entry of the log up to which the archive has every entry; "0-0" for none
    # the next entry of the log, if it lies before the archive's end and the archive lacks it; else
    # None
    lacking: Place | None = None


class _Entry(msgspec.Struct, frozen=True):
    entry: str
    n: int | None
    fields: Sequence[bytes]


class ArchiveComparer:
    """Compares a log with its archive. Use from one thread; changes nothing."""

    def __init__(self, redis: Redis, keys: Keys, archive: "Archive") -> None:
        self._redis = redis
        self._keys = keys
        self._archive = archive
        self._decoder = Decoder()

    def compare(self, partition: int, noted: Place, end: Place) -> Agreement:
        holds = self._is_sealed_upto(partition, noted, end)
        if holds and noted == end:
            return Agreement(end.entry)
        return self._compare_entries(partition, noted.entry if holds else START, end)

    def _is_sealed_upto(self, partition: int, noted: Place, end: Place) -> bool:
        """Return whether the archive has all of the log's entries up to the noted place."""
        last = self._last_number(partition, noted.entry)
        if last is not None and last > noted.n:
            return False  # an entry came later at an earlier place: the server's clock went back
        if noted == end:
            return True
        row = next(self._archive.places(partition, noted.entry, noted.entry), None)
        return row is not None and row.n == noted.n

    def _last_number(self, partition: int, upto: str) -> int | None:
        """Return the number of the last entry of ours up to a place; None if there is none."""
        count = 1
        while page := self._read_entries(_XREVRANGE, partition, upto, "-", count):
            numbers = [entry.n for entry in page if entry.n is not None]
            if numbers:
                return numbers[0]
            upto, count = f"({page[-1].entry}", _PAGE
        return None

    def _compare_entries(self, partition: int, upto: str, end: Place) -> Agreement:
        entries = self._entries(partition, upto, end.entry)
        first = next(entries, None)
        if first is None:
            return Agreement(upto)
        rows = self._archive.places(partition, first.entry, end.entry)  # not before
        row = next(rows, None)
        for entry in chain((first,), entries):
            while row is not None and parse_entry_id(row.entry) < parse_entry_id(entry.entry):
                row = next(rows, None)
            if entry.n is not None and not self._is_same(partition, entry, row):
                return Agreement(upto, Place(entry.entry, entry.n))
            upto = entry.entry
        return Agreement(upto)

    def _is_same(self, partition: int, entry: _Entry, row: SealedRow | None) -> bool:
        if row is None or (entry.entry, entry.n) != (row.entry, row.n):
            return False
        event = decode_entry(partition, entry.entry, entry.fields, self._decoder)
        return event is not None and event.envelope.id == row.id

    def _entries(self, partition: int, after: str, last: str) -> Iterator[_Entry]:
        while page := self._read_entries(_XRANGE, partition, f"({after}", last, _PAGE):
            yield from page
            after = page[-1].entry

    def _read_entries(
        self, command: bytes, partition: int, first: str, last: str, count: int
    ) -> list[_Entry]:
        key, ask = self._keys.log(partition), cast("Any", self._redis).execute_command
        entries: list[tuple[bytes, list[bytes]]]
        with redis_errors(key):
            entries = ask(command, key, first, last, "COUNT", count)
        return [_Entry(entry.decode(), number_of(fields), fields) for entry, fields in entries]
