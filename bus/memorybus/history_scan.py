"""The history of all partitions in one order, lazily."""

import heapq
from collections.abc import Iterable, Iterator

from memorybus.damage import tell
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history_joined import Joined
from memorybus.log import START
from memorybus.logged import LoggedEvent, moment
from memorybus.plan import Plan

PAGE = 500

_LAST = (1 << 64) - 1


class Scan:
    """What is wanted of each partition, in order: first what the archive has, then the log."""

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
        self._since = since
        self._until = until
        self._damage = damage

    def partition(self, partition: int) -> Iterator[LoggedEvent]:
        """Yield the wanted events of one partition."""
        first = self._history.log.read(partition, START, 1)
        if not first:
            yield from self._sealed(partition, START, None)
            return
        after, after_n = START, 0
        if first[0].position.n > 1:
            after, after_n = just_before(first[0].position.entry), first[0].position.n - 1
            yield from self._sealed(partition, after, after_n)
        yield from self._logged(partition, after, after_n)

    def _sealed(self, partition: int, upto: str, upto_n: int | None) -> Iterator[LoggedEvent]:
        """Yield what the archive has up to an entry and its number, or all."""
        try:
            yield from self._archived(partition, None if upto == START else moment(upto), upto_n)
        except ArchiveError as error:
            tell(error, self._damage)

    def _archived(
        self, partition: int, end: tuple[int, int] | None, upto_n: int | None
    ) -> Iterator[LoggedEvent]:
        archive = self._history.sealed(partition)
        if archive is None:
            return
        told = len(self._damage or ())
        found = archive.scan(
            partition, self._plan, since=self._since, until=self._until, damage=self._damage
        )
        for event in found:
            if end is not None and moment(event.position.entry) > end:
                return
            yield event
        if len(self._damage or ()) == told:  # else it is known why it ends where it does
            self._history.check_reaches(partition, upto_n)

    def _logged(self, partition: int, after: str, after_n: int) -> Iterator[LoggedEvent]:
        """Yield what follows; the log may be trimmed meanwhile."""
        read, plan = self._history.read, self._plan
        while page := read(partition, after, PAGE, after_n=after_n, plan=plan):
            yield from (event for event in page if self._is_wanted(event))
            after, after_n = page[-1].position.entry, page[-1].position.n

    def _is_wanted(self, event: LoggedEvent) -> bool:
        at = event.envelope.at
        return (
            type(event.envelope.event) is not Omitted
            and (self._since is None or at >= self._since)
            and (self._until is None or at < self._until)
        )


def just_before(entry: str) -> str:
    """Return the greatest id that an entry before this one can have."""
    ms, sequence = moment(entry)
    return f"{ms}-{sequence - 1}" if sequence else f"{ms - 1}-{_LAST}"


def in_order(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions by the time of their entries."""
    return heapq.merge(*partitions, key=_moment)


def newest_first(partitions: Iterable[Iterator[LoggedEvent]]) -> Iterator[LoggedEvent]:
    """Merge partitions that are read backward: the reverse of `in_order`."""
    return heapq.merge(*partitions, key=_moment, reverse=True)


def _moment(event: LoggedEvent) -> tuple[int, int, int]:
    ms, sequence = moment(event.position.entry)
    return ms, sequence, event.position.partition
