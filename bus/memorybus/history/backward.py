"""Reads the history backward: first the log from its end, then the archive, in all partitions."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

import msgspec

from memorybus.archive.location import check_reaches
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveError
from memorybus.history.forgotten import EventFilters
from memorybus.history.forward import merge_newest_first
from memorybus.history.log_reader import filter_event
from memorybus.history.sources import END, Sources
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import FOREIGN, START, Head
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

_FIRST_PAGE, _MAX_PAGE = 32, 512
"""How many entries of a partition the first command reads, and how many a later one at most."""


class BackwardMark(msgspec.Struct, frozen=True):
    """Where, in the order of all partitions, reading backward stopped and may continue."""

    partition: int  # the partition of the event that was read last
    entry: str  # its entry id

    def bound(self, partition: int) -> str:
        """Return the entry id before which a partition is read."""
        ms, sequence = parse_entry_id(self.entry)
        return f"{ms}-{sequence + 1}" if partition < self.partition else self.entry


class BackwardReader:
    """Reads a history backward. Use from one thread; raises what `History` raises."""

    def __init__(
        self,
        sources: Sources,
        query: Query,
        sealed: Callable[[], Query],
        damage: DamageHandler,
        before: BackwardMark | None = None,
    ) -> None:
        self._sources = sources
        self._filters = EventFilters(Plan(query=query), sources.forgotten_queries)
        self._sealed_query = sealed
        self._damage = damage
        self._before = before

    def events(self, heads: Sequence[Head]) -> Iterator[LoggedEvent]:
        """Yield the events up to the given ends of partitions, newest first, with placeholders."""
        return merge_newest_first(map(self._partition, heads))

    def _partition(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield a partition's events; stop with damage if the tombstones cannot be read."""
        try:
            yield from self._read_partition(head)
        except ArchiveError as error:
            self._damage.add(error)

    def _read_partition(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield the log's events, and from the archive those that the log lacks."""
        partition = head.partition
        place, n = self._end(head)
        for event in self._read_log(head, place):
            own = event.position
            yield from self._read_sealed(partition, place, own.entry, own.n, n - 1)
            yield filter_event(event, self._filters.for_partition(partition))
            place, n = own.entry, own.n
        yield from self._read_sealed(partition, place, START, 0, n - 1)

    # -- the log ----------------------------------------------------------------------------------

    def _end(self, head: Head) -> tuple[str, int]:
        """Return the entry before which a partition is read, and a number above all before it."""
        if self._before is None:
            return END, self._last(head) + 1
        bound = self._before.bound(head.partition)
        following = self._sources.reader.first_place(head.partition, bound)
        return bound, following.n if following else self._last(head) + 1

    def _last(self, head: Head) -> int:
        """Return the last number that was given, even if the log has lost its tail since."""
        sealed = self._sources.reader.sealed_number(head.partition)
        if sealed > head.n and self._sources.log.last_entry(head.partition) == head.entry:
            return sealed
        return head.n

    def _read_log(self, head: Head, end: str) -> Iterator[LoggedEvent]:
        """Yield the log's events, newest first, without entries that another program wrote."""
        if head.entry == START:
            return
        reader, partition, count = self._sources.reader, head.partition, _FIRST_PAGE
        last = "+" if head.entry == FOREIGN else head.entry
        if end != END:
            last = f"({end}"
        while found := reader.read_backward(partition, last, count):
            event_filter = self._filters.for_partition(partition)
            for entry, fields in found:
                event = reader.filter_entry(partition, entry, fields, event_filter)
                if event is not None:
                    yield event
            last = f"({found[-1][0].decode()}"
            count = min(2 * count, _MAX_PAGE)

    # -- the archive ------------------------------------------------------------------------------

    def _read_sealed(
        self, partition: int, before: str, after: str, after_n: int, upto: int
    ) -> Iterator[LoggedEvent]:
        """Yield the sealed events between two entries, newest first, if the log lacks numbers."""
        if upto <= after_n:
            return
        sealed = self._sources.reader.sealed_number(partition)
        if sealed <= after_n:
            return
        damage = self._damage.for_partition()
        try:
            for event in self._read_archive(partition, before, min(upto, sealed), damage):
                if parse_entry_id(event.position.entry) <= parse_entry_id(after):
                    return
                if event.position.n <= sealed:  # a later one may be another log's event
                    yield event
        except ArchiveError as error:
            damage.add(error)

    def _read_archive(
        self, partition: int, before: str, wanted: int, damage: DamageHandler
    ) -> Iterator[LoggedEvent]:
        """Yield the sealed events before an entry, once it is checked that none is missing."""
        archive = self._sources.archive()
        events = (
            archive.read_backward(partition, before, self._plan, damage) if archive else iter(())
        )
        newest = list(islice(events, 1))
        if not damage.found:  # otherwise the damage explains where the archive ends
            self._check_reaches(archive, partition, wanted, damage)
        yield from chain(newest, events)

    def _check_reaches(
        self, archive: "Archive | None", partition: int, wanted: int, damage: DamageHandler
    ) -> None:
        try:
            check_reaches(archive, partition, wanted)
        except ArchiveError as error:
            damage.add(error)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(query=self._sealed_query())
