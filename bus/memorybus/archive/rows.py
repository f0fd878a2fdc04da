"""Reading a partition's archive by place: pages, and single rows."""

from collections.abc import Iterator, Sequence

from memorybus.archive.decoding import (
    Wanted,
    events_of,
    placeholders,
    row_before,
    rows_after,
)
from memorybus.archive.format import bloom
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.reader import CONTENT, Group
from memorybus.archive.partition import SealedPartition
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.events import Omission
from memorybus.log.entry import LoggedEvent, moment
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

_PAGE = 100
"""Rows decoded at once: more of them do not fit into a processor's cache."""


class Rows:
    """Reads one partition's rows. Belongs to one thread."""

    def __init__(self, part: SealedPartition, decoder: Decoder) -> None:
        """Read nothing yet."""
        self._part = part
        self._decoder = decoder
        self._partition = part.of.partition

    def read(self, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """See `Archive.read`."""
        wanted = Wanted(plan, self._part.shared.forgotten())
        found: list[LoggedEvent] = []
        place = moment(after)
        while len(found) < count:
            try:
                part = self._page(place, count - len(found), wanted)
            except ArchiveDamaged:
                if not found:
                    raise
                break  # the next call begins with it
            if not part:
                break
            found += part
            place = moment(part[-1].position.entry)
        return found

    def _page(self, place: tuple[int, int], count: int, wanted: Wanted) -> list[LoggedEvent]:
        """Return rows of one group; those of a segment that was compacted away meanwhile, too."""
        while (segment := self._part.after(place)) is not None:
            try:
                with self._part.telling(segment):
                    return self._some(segment, place, count, wanted)
            except ArchiveError:  # an object store does not give what was deleted
                if not self._part.is_replaced(segment, place):
                    raise
        return []

    def _some(
        self, segment: Segment, place: tuple[int, int], count: int, wanted: Wanted
    ) -> list[LoggedEvent]:
        passed = may_pass(segment, wanted)
        names = () if passed else _names(wanted)
        index, row, group = self._from(segment, place, names)
        rows = range(row, min(row + count, len(group.entries)))
        if names == CONTENT and count > _PAGE:  # who reads much reads on
            self._part.ahead(segment, index + 1, CONTENT)
        if passed:
            reasons: Sequence[Omission | None] = ["filtered"] * len(rows)
        else:
            reasons = wanted.reasons(self._partition, group, rows)
        found: list[LoggedEvent] = []
        for some, why in pages(rows, reasons):
            found += events_at(self._part, segment, index, some, why, group, self._decoder)
        return found

    def _from(
        self, segment: Segment, place: tuple[int, int], names: tuple[str, ...]
    ) -> tuple[int, int, Group]:
        """Return the first row after a place: the group's number, the row's, and the group."""
        index = self._part.group_after(segment, place)
        group = self._part.group(segment, index, names)
        row = rows_after(group, place)
        if row < len(group.entries):
            return index, row, group
        return index + 1, 0, self._part.group(segment, index + 1, names)

    def before(self, place: tuple[int, int]) -> LoggedEvent | None:
        """Return the last event before a moment, None if there is none."""
        segment = self._part.before(place)
        if segment is None:
            return None
        wanted = Wanted(Plan(), self._part.shared.forgotten())
        with self._part.telling(segment):
            index = self._part.opened(segment).group_before(place)
            group = self._part.group(segment, index, CONTENT)
            row = row_before(group, place)
            rows = range(row, row + 1)
            named = self._part.group(segment, index, _names(wanted))
            reasons = wanted.reasons(self._partition, named, rows)
            return events_at(self._part, segment, index, rows, reasons, group, self._decoder)[0]


def events_at(
    part: SealedPartition,
    segment: Segment,
    index: int,
    rows: range,
    reasons: Sequence[Omission | None],
    group: Group,
    decoder: Decoder,
) -> list[LoggedEvent]:
    """Return the events of some rows; the content is only read if any of them is wanted.

    Args:
        part: the partition's archive.
        segment: which segment.
        index: which of its groups.
        rows: which of its rows.
        reasons: why each of them is left out, None if it is not.
        group: that group, with any columns.
        decoder: the reader's.

    Raises:
        ArchiveDamaged: the content is not what was sealed.
    """
    if None not in reasons:
        return placeholders(part.of.partition, group, rows, reasons)
    content = part.group(segment, index, CONTENT)
    return events_of(part.of.partition, content, rows, reasons, decoder)


def pages(
    rows: range, reasons: Sequence[Omission | None]
) -> Iterator[tuple[range, Sequence[Omission | None]]]:
    """Yield rows with why they are left out, so many as are decoded at once."""
    for start in range(0, len(rows), _PAGE):
        yield rows[start : start + _PAGE], reasons[start : start + _PAGE]


def may_pass(segment: Segment, wanted: Wanted) -> bool:
    """Say whether the manifest alone tells that nothing of a segment is wanted."""
    sessions = wanted.plan.query.sessions
    return bool(sessions) and not bloom.may_hold(segment.sessions, sessions)


def _names(wanted: Wanted) -> tuple[str, ...]:
    """Return the columns to read first: those that decide, or, if nothing does, the content."""
    return wanted.reads if wanted.filters else CONTENT
