"""The history of all partitions in one order, lazily."""

import heapq
from collections.abc import Generator, Iterable, Iterator

import msgspec

from memorybus.archive.damage import heard, tell
from memorybus.archive.format.manifest import Place
from memorybus.archive.location import check_reaches
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history.forgotten import EventFilters
from memorybus.history.joined import END, Joined, Sealed
from memorybus.history.log_part import Page, sifted
from memorybus.log.entry import LoggedEvent, moment
from memorybus.log.stream import START
from memorybus.query.ranges import Plan

PAGE = 500

_ENDLESS = 1 << 63


class Scan:
    """What is wanted of each partition, in order: the log, and what it lacks from the archive."""

    def __init__(
        self,
        history: Joined,
        plan: Plan,
        since: int | None,
        until: int | None,
        damage: list[str] | None,
    ) -> None:
        """Read nothing yet; see `History.scan`."""
        self._history = history
        self._plan = plan
        self._sieves = EventFilters(plan, history.forgotten)
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
                last = page.events[-1].position
                at = Place(last.entry, last.n)
            else:
                at = yield from self._with_holes(partition, at, page)
        yield from self._sealed(partition, at, END, _ENDLESS)

    def _page(self, partition: int, at: Place) -> Page:
        return self._history.part.read(partition, at.entry, PAGE, at.n, self._sieves.of(partition))

    def _with_holes(
        self, partition: int, at: Place, page: Page
    ) -> Generator[LoggedEvent, None, Place]:
        """Yield a page whose numbers do not follow, with what is sealed where some are missing.

        Before a stranger's entry may be missing what is before the next one of ours. Where the log
        begins with one, strangers' entries before it may be, too.
        """
        ahead = self._ahead(partition, page)
        for event, n, following in zip(page.events, page.numbers, ahead, strict=True):
            entry = event.position.entry
            least = 1 if at.entry == START and not n else 0
            last = yield from self._sealed(partition, at, entry, max(following - 1, least))
            seen = event if n else _lent(event, min(following, last + 1))
            seen = sifted(seen, self._sieves.of(partition))  # reading the archive may take hours
            if self._is_wanted(seen):
                yield seen
            at = Place(entry, n or at.n)
        return at

    def _ahead(self, partition: int, page: Page) -> list[int]:
        """Return for each entry of a page its number, or the next one of ours behind it."""
        following, found = 0, []
        if not page.numbers[-1]:
            place = self._history.part.first(partition, f"({page.events[-1].position.entry}")
            following = place.n if place else _ENDLESS
        for n in reversed(page.numbers):
            following = n or following
            found.append(following)
        return found[::-1]

    # -- the archive ------------------------------------------------------------------------------

    def _sealed(
        self, partition: int, at: Place, end: str, upto: int
    ) -> Generator[LoggedEvent, None, int]:
        """Yield what is sealed between a place and an entry, if numbers up to one are missing.

        Returns:
            The last number of ours before the entry.
        """
        if upto <= at.n:
            return at.n
        sealed = self._history.part.sealed(partition)
        if sealed <= at.n:
            return at.n
        listener, wanted = heard(self._damage), min(upto, sealed)
        try:
            archive = self._history.opened()
            for event in self._archived(archive, partition, at, listener):
                if moment(event.position.entry) >= moment(end) or event.position.n > sealed:
                    return wanted  # behind what is sealed may stand another log's
                yield event
            if not listener:  # else it is known why it ends where it does
                check_reaches(archive, partition, wanted)
        except ArchiveError as error:
            tell(error, listener)
        return wanted

    def _archived(
        self, archive: Sealed | None, partition: int, at: Place, listener: list[str] | None
    ) -> Iterator[LoggedEvent]:
        if archive is None:
            return iter(())
        times = {"since": self._since, "until": self._until}
        return archive.scan(partition, self._plan, after=at.entry, damage=listener, **times)

    def _is_wanted(self, event: LoggedEvent) -> bool:
        at = event.envelope.at
        return (
            type(event.envelope.event) is not Omitted
            and (self._since is None or at >= self._since)
            and (self._until is None or at < self._until)
        )


def _lent(event: LoggedEvent, n: int) -> LoggedEvent:
    """Return a stranger's entry with the number of what follows it."""
    position = msgspec.structs.replace(event.position, n=n)
    return msgspec.structs.replace(event, position=position)


def in_order(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions by the time of their entries."""
    return heapq.merge(*partitions, key=_moment)


def newest_first(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions that are read backward: the reverse of `in_order`."""
    return heapq.merge(*partitions, key=_moment, reverse=True)


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, sequence = moment(event.position.entry)
    return ms, sequence, event.position.partition
