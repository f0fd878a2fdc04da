"""The history backward: the log from its end, then the archive, over all partitions.

What the newest events cost does not grow with the history. What is left out comes as a placeholder
until partitions are merged, so that none is read back further in time than the others.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice

from memorybus.archive.damage import heard, tell
from memorybus.archive.location import check_reaches
from memorybus.errors import ArchiveError
from memorybus.events import Omitted
from memorybus.history.forgotten import EventFilters
from memorybus.history.forward import newest_first
from memorybus.history.joined import END, Joined, Sealed
from memorybus.history.log_part import Entry, sifted
from memorybus.log.entry import LoggedEvent, logged, moment, number_of
from memorybus.log.stream import FOREIGN, START, Head
from memorybus.query.query import Query
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

_FIRST, _MOST = 32, 512
"""Entries of a partition that are read at once: at first, and at most."""


class Back:
    """Reads a history backward. Use from one thread; raises what `Joined` raises."""

    def __init__(
        self,
        history: Joined,
        query: Query,
        sealed: Callable[[], Query],
        damage: list[str] | None,
    ) -> None:
        """Read nothing yet.

        Args:
            history: archive and log.
            query: asked of the log.
            sealed: returns what is asked of the archive, when that is first needed.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        self._history = history
        self._sieves = EventFilters(Plan(query=query), history.forgotten)
        self._sealed_query = sealed
        self._damage = damage
        self._decoder = Decoder()

    def events(self, heads: Sequence[Head]) -> Iterator[LoggedEvent]:
        """Yield the wanted events up to the ends of partitions, newest first."""
        merged = newest_first(map(self._partition, heads))
        return (event for event in merged if type(event.envelope.event) is not Omitted)

    def _partition(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield one partition; nothing if it is not known what is forgotten."""
        try:
            yield from self._joined(head)
        except ArchiveError as error:
            tell(error, self._damage)

    def _joined(self, head: Head) -> Iterator[LoggedEvent]:
        """Yield what the log has, and what it lacks from the archive.

        Before a stranger's entry may be missing what is behind the next older one of ours.
        """
        partition, place, n, below = head.partition, END, self._last(head) + 1, 0
        strange = False
        for id_, fields in self._logged(head):
            entry, own = id_.decode(), number_of(fields)
            if own or not strange:
                below = own or self._below(partition, entry)
            strange = not own
            yield from self._sealed(partition, place, entry, below, n - 1)
            event = logged(partition, entry, fields, n, self._decoder)
            yield sifted(event, self._sieves.of(partition))
            place, n = entry, own or n
        least = 1 if strange else 0  # before strangers' entries may have been others'
        yield from self._sealed(partition, place, START, 0, max(n - 1, least))

    # -- the log ----------------------------------------------------------------------------------

    def _last(self, head: Head) -> int:
        """Return the last number that was given, also where the log lost its tail since."""
        sealed = self._history.part.sealed(head.partition)
        if sealed > head.n and self._history.log.end(head.partition) == head.entry:
            return sealed
        return head.n

    def _below(self, partition: int, entry: str) -> int:
        """Return the number of the last entry of ours before one, 0 for none."""
        found = self._history.part.last(partition, f"({entry}")
        return found.n if found else 0

    def _logged(self, head: Head) -> Iterator[Entry]:
        """Yield the log's entries as they stand, page by page."""
        if head.entry == START:
            return
        part, partition, count = self._history.part, head.partition, _FIRST
        last = "+" if head.entry == FOREIGN else head.entry
        while found := part.back(partition, last, count):
            yield from found
            last = f"({found[-1][0].decode()}"
            count = min(2 * count, _MOST)

    # -- the archive ------------------------------------------------------------------------------

    def _sealed(
        self, partition: int, before: str, after: str, after_n: int, upto: int
    ) -> Iterator[LoggedEvent]:
        """Yield what is sealed between two entries, newest first, if numbers are missing there."""
        if upto <= after_n:
            return
        sealed = self._history.part.sealed(partition)
        if sealed <= after_n:
            return
        listener = heard(self._damage)
        try:
            for event in self._archived(partition, before, min(upto, sealed), listener):
                if moment(event.position.entry) <= moment(after):
                    return
                if event.position.n <= sealed:  # behind that may stand another log's
                    yield event
        except ArchiveError as error:
            tell(error, listener)

    def _archived(
        self, partition: int, before: str, wanted: int, listener: list[str] | None
    ) -> Iterator[LoggedEvent]:
        """Yield what is sealed before an entry, after it is known that the archive has its end."""
        archive = self._history.opened()
        found = archive.back(partition, before, self._plan, listener) if archive else iter(())
        newest = list(islice(found, 1))
        if not listener:  # else it is known why it ends where it does
            self._check_reaches(archive, partition, wanted, listener)
        yield from chain(newest, found)

    def _check_reaches(
        self, archive: Sealed | None, partition: int, wanted: int, listener: list[str] | None
    ) -> None:
        try:
            check_reaches(archive, partition, wanted)
        except ArchiveError as error:
            tell(error, listener)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(query=self._sealed_query())
