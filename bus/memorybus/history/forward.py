"""Reads the history forward and lazily, all partitions in one order."""

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memorybus.archive.location import check_reaches
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history.forgotten import EventFilters
from memorybus.history.log_reader import EventPage, filter_event
from memorybus.history.sources import END, Sources
from memorybus.log.entry import LoggedEvent, Place, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.ranges import Plan

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

PAGE = 500
_NO_END_NUMBER = 1 << 63


class Scan:
    """Yields the wanted events of each partition in order, from the log and from the archive."""

    def __init__(
        self,
        sources: Sources,
        plan: Plan,
        since: int | None,
        until: int | None,
        damage: DamageHandler,
    ) -> None:
        self._sources = sources
        self._plan = plan
        self._filters = EventFilters(plan, sources.forgotten_queries)
        self._since = since
        self._until = until
        self._damage = damage

    def partition(self, partition: int) -> Iterator[LoggedEvent]:
        try:
            yield from self._read_partition(partition)
        except ArchiveError as error:
            self._damage.add(error)

    def _read_partition(self, partition: int) -> Iterator[LoggedEvent]:
        at = Place(START, 0)
        while (page := self._read_page(partition, at)).events:  # the log may be trimmed meanwhile
            if page.follows(at.n):
                yield from filter(self._is_wanted, page.events)
            else:
                yield from self._with_holes(partition, at, page)
            last = page.events[-1].position
            at = Place(last.entry, last.n)
        yield from self._read_sealed(partition, at, END, _NO_END_NUMBER)

    def _read_page(self, partition: int, at: Place) -> EventPage:
        return self._sources.reader.read(
            partition, at.entry, PAGE, self._filters.for_partition(partition)
        )

    def _with_holes(self, partition: int, at: Place, page: EventPage) -> Iterator[LoggedEvent]:
        """Yield a page whose numbers have gaps, and fill the gaps from the archive."""
        for event in page.events:
            entry, n = event.position.entry, event.position.n
            yield from self._read_sealed(partition, at, entry, n - 1)
            # The event is filtered again, because reading the archive may have taken hours.
            seen = filter_event(event, self._filters.for_partition(partition))
            if self._is_wanted(seen):
                yield seen
            at = Place(entry, n)

    # -- the archive ------------------------------------------------------------------------------

    def _read_sealed(self, partition: int, at: Place, end: str, upto: int) -> Iterator[LoggedEvent]:
        """Yield the sealed events between a place and an entry, if the log lacks numbers there."""
        if upto <= at.n:
            return
        sealed = self._sources.reader.sealed_number(partition)
        if sealed <= at.n:
            return
        damage = self._damage.for_partition()
        try:
            archive = self._sources.archive()
            for event in self._read_archive(archive, partition, at, damage):
                if (
                    parse_entry_id(event.position.entry) >= parse_entry_id(end)
                    or event.position.n > sealed
                ):
                    return  # behind the sealed ones there may be another log's events
                yield event
            if not damage.found:  # otherwise the damage explains where the archive ends
                check_reaches(archive, partition, min(upto, sealed))
        except ArchiveError as error:
            damage.add(error)

    def _read_archive(
        self, archive: "Archive | None", partition: int, at: Place, damage: DamageHandler
    ) -> Iterator[LoggedEvent]:
        if archive is None:
            return iter(())
        times = {"since": self._since, "until": self._until}
        return archive.scan(partition, self._plan, after=at.entry, damage=damage, **times)

    def _is_wanted(self, event: LoggedEvent) -> bool:
        at = event.envelope.at
        return (
            type(event.envelope.event) is not Omitted
            and (self._since is None or at >= self._since)
            and (self._until is None or at < self._until)
        )


def merge_in_order(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    return heapq.merge(*partitions, key=_moment)


def merge_newest_first(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions that are read backward: the reverse of `merge_in_order`."""
    return heapq.merge(*partitions, key=_moment, reverse=True)


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, sequence = parse_entry_id(event.position.entry)
    return ms, sequence, event.position.partition
