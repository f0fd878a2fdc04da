"""The history of all partitions in one order, lazily."""

import heapq
from collections.abc import Iterable, Iterator

from memorybus.archive.damage import of_partition, tell
from memorybus.archive.location import check_reaches
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history.forgotten import EventFilters
from memorybus.history.log_reader import EventPage, sifted
from memorybus.history.sources import END, SealedPast, Sources
from memorybus.log.entry import LoggedEvent, Place, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.ranges import Plan

PAGE = 500

_ENDLESS = 1 << 63


class Scan:
    """What is wanted of each partition, in order: the log, and what it lacks from the archive."""

    def __init__(
        self,
        sources: Sources,
        plan: Plan,
        since: int | None,
        until: int | None,
        damage: list[str] | None,
    ) -> None:
        """Read nothing yet; see `History.scan`."""
        self._sources = sources
        self._plan = plan
        self._sieves = EventFilters(plan, sources.forgotten)
        self._since = since
        self._until = until
        self._damage = damage

    def partition(self, partition: int) -> Iterator[LoggedEvent]:
        """Yield the wanted events of one partition; none if it is not known what is forgotten."""
        try:
            yield from self._joined(partition)
        except ArchiveError as error:
            tell(error, self._damage)

    def _joined(self, partition: int) -> Iterator[LoggedEvent]:
        at = Place(START, 0)
        while (page := self._page(partition, at)).events:  # the log may be trimmed meanwhile
            if page.follows(at.n):
                yield from filter(self._is_wanted, page.events)
            else:
                yield from self._with_holes(partition, at, page)
            last = page.events[-1].position
            at = Place(last.entry, last.n)
        yield from self._sealed(partition, at, END, _ENDLESS)

    def _page(self, partition: int, at: Place) -> EventPage:
        return self._sources.reader.read(partition, at.entry, PAGE, self._sieves.of(partition))

    def _with_holes(self, partition: int, at: Place, page: EventPage) -> Iterator[LoggedEvent]:
        """Yield a page whose numbers do not follow, with what is sealed where some are missing."""
        for event in page.events:
            entry, n = event.position.entry, event.position.n
            yield from self._sealed(partition, at, entry, n - 1)
            # Judged again: reading the archive may take hours.
            seen = sifted(event, self._sieves.of(partition))
            if self._is_wanted(seen):
                yield seen
            at = Place(entry, n)

    # -- the archive ------------------------------------------------------------------------------

    def _sealed(self, partition: int, at: Place, end: str, upto: int) -> Iterator[LoggedEvent]:
        """Yield what is sealed between a place and an entry, if numbers up to one are missing."""
        if upto <= at.n:
            return
        sealed = self._sources.reader.sealed(partition)
        if sealed <= at.n:
            return
        damage = of_partition(self._damage)
        try:
            archive = self._sources.archive()
            for event in self._archived(archive, partition, at, damage):
                if (
                    parse_entry_id(event.position.entry) >= parse_entry_id(end)
                    or event.position.n > sealed
                ):
                    return  # behind what is sealed may stand another log's
                yield event
            if not damage:  # else it is known why it ends where it does
                check_reaches(archive, partition, min(upto, sealed))
        except ArchiveError as error:
            tell(error, damage)

    def _archived(
        self, archive: SealedPast | None, partition: int, at: Place, damage: list[str] | None
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


def in_order(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions by the time of their entries."""
    return heapq.merge(*partitions, key=_moment)


def newest_first(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions that are read backward: the reverse of `in_order`."""
    return heapq.merge(*partitions, key=_moment, reverse=True)


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, sequence = parse_entry_id(event.position.entry)
    return ms, sequence, event.position.partition
