"""The history backward: the log from its end, then the archive, over all partitions.

What the newest events cost does not grow with the history. What is left out comes as a placeholder,
so that none is read back further in time than the others, and the reader knows how far it came.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice

import msgspec

from memorybus.archive.damage import of_partition, tell
from memorybus.archive.location import check_reaches
from memorybus.errors import ArchiveError
from memorybus.history.forgotten import EventFilters
from memorybus.history.forward import newest_first
from memorybus.history.log_reader import sifted
from memorybus.history.sources import END, SealedPast, Sources
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import FOREIGN, START, Head
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

_FIRST, _MOST = 32, 512
"""Entries of a partition that are read at once: at first, and at most."""


class Mark(msgspec.Struct, frozen=True):
    """A place in the order of all partitions, where reading back stopped and may go on.

    Attributes:
        partition: of the event that was read last.
        entry: its entry.
    """

    partition: int
    entry: str

    def bound(self, partition: int) -> str:
        """Return the id before which a partition is read: at one time they go in their order."""
        ms, sequence = parse_entry_id(self.entry)
        return f"{ms}-{sequence + 1}" if partition < self.partition else self.entry


class Back:
    """Reads a history backward. Use from one thread; raises what `History` raises."""

    def __init__(
        self,
        sources: Sources,
        query: Query,
        sealed: Callable[[], Query],
        damage: list[str] | None,
        before: Mark | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            sources: archive and log.
            query: asked of the log.
            sealed: returns what is asked of the archive, when that is first needed.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
            before: where an earlier reader stopped; None for the end.
        """
        self._sources = sources
        self._sieves = EventFilters(Plan(query=query), sources.forgotten)
        self._sealed_query = sealed
        self._damage = damage
        self._before = before

    def events(self, heads: Sequence[Head]) -> Iterator[LoggedEvent]:
        """Yield the events up to the ends of partitions, newest first, with placeholders."""
        return newest_first(map(self._partition, heads))

    def _partition(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield one partition; nothing if it is not known what is forgotten."""
        try:
            yield from self._joined(head)
        except ArchiveError as error:
            tell(error, self._damage)

    def _joined(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield what the log has, and what it lacks from the archive."""
        partition = head.partition
        place, n = self._end(head)
        for event in self._logged(head, place):
            own = event.position
            yield from self._sealed(partition, place, own.entry, own.n, n - 1)
            yield sifted(event, self._sieves.of(partition))
            place, n = own.entry, own.n
        yield from self._sealed(partition, place, START, 0, n - 1)

    # -- the log ----------------------------------------------------------------------------------

    def _end(self, head: Head) -> tuple[str, int]:
        """Return the entry before which a partition is read, and a number that is not before it."""
        if self._before is None:
            return END, self._last(head) + 1
        bound = self._before.bound(head.partition)
        following = self._sources.reader.first(head.partition, bound)
        return bound, following.n if following else self._last(head) + 1

    def _last(self, head: Head) -> int:
        """Return the last number that was given, also where the log lost its tail since."""
        sealed = self._sources.reader.sealed(head.partition)
        if sealed > head.n and self._sources.log.last_entry(head.partition) == head.entry:
            return sealed
        return head.n

    def _logged(self, head: Head, end: str) -> Iterator[LoggedEvent]:
        """Yield the log's events, newest first; entries that somebody else wrote are dropped."""
        if head.entry == START:
            return
        reader, partition, count = self._sources.reader, head.partition, _FIRST
        last = "+" if head.entry == FOREIGN else head.entry
        if end != END:
            last = f"({end}"
        while found := reader.back(partition, last, count):
            sieve = self._sieves.of(partition)
            for entry, fields in found:
                event = reader.sifted(partition, entry, fields, sieve)
                if event is not None:
                    yield event
            last = f"({found[-1][0].decode()}"
            count = min(2 * count, _MOST)

    # -- the archive ------------------------------------------------------------------------------

    def _sealed(
        self, partition: int, before: str, after: str, after_n: int, upto: int
    ) -> Iterator[LoggedEvent]:
        """Yield what is sealed between two entries, newest first, if numbers are missing there."""
        if upto <= after_n:
            return
        sealed = self._sources.reader.sealed(partition)
        if sealed <= after_n:
            return
        damage = of_partition(self._damage)
        try:
            for event in self._archived(partition, before, min(upto, sealed), damage):
                if parse_entry_id(event.position.entry) <= parse_entry_id(after):
                    return
                if event.position.n <= sealed:  # behind that may stand another log's
                    yield event
        except ArchiveError as error:
            tell(error, damage)

    def _archived(
        self, partition: int, before: str, wanted: int, damage: list[str] | None
    ) -> Iterator[LoggedEvent]:
        """Yield what is sealed before an entry, after it is known that the archive has its end."""
        archive = self._sources.archive()
        found = archive.back(partition, before, self._plan, damage) if archive else iter(())
        newest = list(islice(found, 1))
        if not damage:  # else it is known why it ends where it does
            self._check_reaches(archive, partition, wanted, damage)
        yield from chain(newest, found)

    def _check_reaches(
        self, archive: SealedPast | None, partition: int, wanted: int, damage: list[str] | None
    ) -> None:
        try:
            check_reaches(archive, partition, wanted)
        except ArchiveError as error:
            tell(error, damage)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(query=self._sealed_query())
