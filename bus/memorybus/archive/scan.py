"""Reading a partition's archive from a place to its end: only what is wanted, and past damage."""

from collections.abc import Iterator, Sequence

from memorybus.archive.damage import tell
from memorybus.archive.decoding import Wanted, events_of, rows_after, wanted_events
from memorybus.archive.format.columns import numbers
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.reader import CONTENT, Group
from memorybus.archive.partition import SealedPartition
from memorybus.archive.rows import may_pass, pages
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.events import Omission, Omitted
from memorybus.log.entry import LoggedEvent, moment
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder, are_plausible

Times = tuple[int | None, int | None]
"""The earliest time of an event, and the time before which events are wanted (milliseconds)."""


class ScanRows:
    """Reads one partition's wanted rows. Belongs to one thread."""

    def __init__(self, part: SealedPartition, decoder: Decoder) -> None:
        """Read nothing yet."""
        self._part = part
        self._decoder = decoder
        self._partition = part.of.partition

    def read(
        self, plan: Plan, after: str, times: Times, damage: list[str] | None
    ) -> Iterator[LoggedEvent]:
        """See `Archive.scan`. What is compacted away meanwhile is read where it is now."""
        wanted = Wanted(plan, self._part.shared.forgotten())
        place = moment(after)
        while (segment := self._following(place, damage)) is not None:
            wanted = wanted.hiding(self._part.shared.forgotten())
            try:
                for reached, events in self._pages(segment, place, wanted, times):
                    yield from events
                    place = reached
            except ArchiveError as error:
                if self._part.is_replaced(segment, place):
                    continue
                if not isinstance(error, ArchiveDamaged):
                    raise
                tell(error, damage)
            place = moment(segment.last.entry)

    def _following(self, place: tuple[int, int], damage: list[str] | None) -> Segment | None:
        try:
            return self._part.after(place)
        except ArchiveDamaged as error:
            tell(error, damage)
            return self._part.beyond(place)

    def _pages(
        self, segment: Segment, place: tuple[int, int], wanted: Wanted, times: Times
    ) -> Iterator[tuple[tuple[int, int], list[LoggedEvent]]]:
        """Yield a segment's wanted rows after a place, each time with how far they go."""
        if may_pass(segment, wanted) or _untimely(segment, times):
            return
        reader = self._part.opened(segment)
        for index in range(reader.group_after(place), reader.groups):
            with self._part.telling(segment):
                group = self._part.group(segment, index, _names(wanted, times))
                rows = range(rows_after(group, place), len(group.entries))
                reasons = self._reasons(group, rows, wanted, times)
            for some, why in pages(rows, reasons):
                if None in why:
                    with self._part.telling(segment):
                        found = self._events(segment, index, some, why)
                        reached = moment(group.entries[some[-1]])
                    yield reached, found

    def _reasons(
        self, group: Group, rows: range, wanted: Wanted, times: Times
    ) -> Sequence[Omission | None]:
        """Return for each row why it is left out, None if it is wanted."""
        reasons = wanted.reasons(self._partition, group, rows)
        if times != (None, None):
            _leave_out(reasons, numbers(group.table.column("at"), "q")[rows.start :], times)
        return reasons

    def _events(
        self, segment: Segment, index: int, rows: range, why: Sequence[Omission | None]
    ) -> list[LoggedEvent]:
        """Return the wanted rows of a page, but for what was not kept."""
        content = self._part.group(segment, index, CONTENT)
        if not any(why):
            found = events_of(self._partition, content, rows, why, self._decoder)
            if are_plausible([one.envelope for one in found]):  # also where another wrote them
                return [one for one in found if not isinstance(one.envelope.event, Omitted)]
        chosen = [row for row, reason in zip(rows, why, strict=True) if reason is None]
        return wanted_events(self._partition, content, chosen, self._decoder)


def _names(wanted: Wanted, times: Times) -> tuple[str, ...]:
    """Return the columns that decide; the content if none does."""
    timed = ("at",) if times != (None, None) else ()
    return (*(wanted.reads if wanted.filters else ()), *timed) or CONTENT


def _untimely(segment: Segment, times: Times) -> bool:
    since, until = times
    early = since is not None and segment.until < since
    return early or (until is not None and segment.since >= until)


def _leave_out(reasons: list[Omission | None], at: Sequence[int], times: Times) -> None:
    since, until = times
    for place, moment_ in enumerate(at):
        if (since is not None and moment_ < since) or (until is not None and moment_ >= until):
            reasons[place] = reasons[place] or "filtered"
