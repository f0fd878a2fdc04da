"""Reading one partition's sealed rows: forward, backward, by page and by place."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from memorybus.archive.damage import tell
from memorybus.archive.decoding import (
    RowFilter,
    events_of,
    has_unreadable,
    placeholders,
    row_before,
    rows_after,
    wanted_events,
)
from memorybus.archive.format import bloom
from memorybus.archive.format.columns import hex_ids, numbers
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.reader import CONTENT, Group
from memorybus.archive.partition import SealedPartition, last_before
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.events import Omission, Omitted, UnknownEvent
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder, are_plausible

_PAGE = 100
"""Rows decoded at once: more of them do not fit into a processor's cache."""

_BEGINNING = (0, 0)

Moment = tuple[int, int]
"""An entry's milliseconds and its number within them: the order of entries."""

Times = tuple[int | None, int | None]
"""The earliest time of an event, and the time before which events are wanted (milliseconds)."""

Reasons = Sequence[Omission | None]
"""For each row why it is left out; None if it is not."""

_T = TypeVar("_T")


class SealedRow(msgspec.Struct, frozen=True):
    """Where a sealed event lies: its stream entry's id, its dense number, and the event's id."""

    entry: str
    n: int
    id: str


class SealedRows:
    """Reads one partition's rows. Belongs to one thread.

    A segment that an archiver replaces while it is read is read on in its replacement. Every
    method raises `ArchiveDamaged` for what cannot be read, unless it takes `damage`.
    """

    def __init__(self, part: SealedPartition, decoder: Decoder) -> None:
        """Read nothing yet."""
        self._part = part
        self._decoder = decoder
        self._partition = part.of.partition

    # -- a page ---------------------------------------------------------------------------------

    def read(self, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """See `Archive.read`."""
        wanted = RowFilter(plan, self._part.shared.forgotten())
        found: list[LoggedEvent] = []
        place = parse_entry_id(after)
        while len(found) < count:
            try:
                page = self._page(place, count - len(found), wanted)
            except ArchiveDamaged:
                if not found:
                    raise
                break  # the next call begins with it
            if page is None:
                break
            place, events = page
            found += events
        return found

    def _page(
        self, place: Moment, count: int, wanted: RowFilter
    ) -> tuple[Moment, list[LoggedEvent]] | None:
        """Return some rows of one group, and how far they go; None if nothing follows."""
        while (segment := self._part.after(place)) is not None:
            try:
                with self._part.naming_file(segment):
                    return self._some(segment, place, count, wanted)
            except ArchiveError:  # an object store does not give what was deleted
                if not self._part.is_replaced(segment, place):
                    raise
        return None

    def _some(
        self, segment: Segment, place: Moment, count: int, wanted: RowFilter
    ) -> tuple[Moment, list[LoggedEvent]]:
        passed = _may_pass(segment, wanted)
        names = () if passed else _names(wanted)
        index, row, group = self._from(segment, place, names)
        rows = range(row, min(row + count, len(group.entries)))
        if names == CONTENT and count > _PAGE:  # who reads much reads on
            self._part.ahead(segment, index + 1, CONTENT)
        reasons: Reasons = ["filtered"] * len(rows)
        if not passed:
            reasons = wanted.reasons(self._partition, group, rows)
        found: list[LoggedEvent] = []
        for some, why in _pages(rows, reasons):
            found += self._events(segment, index, some, why, group)
        return parse_entry_id(group.entries[rows[-1]]), found

    def _from(
        self, segment: Segment, place: Moment, names: tuple[str, ...]
    ) -> tuple[int, int, Group]:
        """Return the first row after a place: the group's number, the row's, and the group."""
        index = self._part.group_after(segment, place)
        group = self._part.group(segment, index, names)
        row = rows_after(group, place)
        if row < len(group.entries):
            return index, row, group
        return index + 1, 0, self._part.group(segment, index + 1, names)

    def before(self, place: Moment) -> LoggedEvent | None:
        """Return the last event before a moment, None if there is none."""
        wanted = RowFilter(Plan(), self._part.shared.forgotten())
        while (segment := self._part.before(place)) is not None:
            with self._part.naming_file(segment):
                index = self._part.opened(segment).group_before(place)
                group = self._part.group(segment, index, CONTENT)
                row = row_before(group, place)
                rows = range(row, row + 1)
                named = self._part.group(segment, index, _names(wanted))
                reasons = wanted.reasons(self._partition, named, rows)
                found = self._events(segment, index, rows, reasons, group)
                place = parse_entry_id(group.entries[row])
            if found:
                return found[0]
        return None

    def _events(
        self, segment: Segment, index: int, rows: range, reasons: Reasons, group: Group
    ) -> list[LoggedEvent]:
        """Return the events of some rows; the content is only read if any of them is wanted.

        Args:
            segment: which segment.
            index: which of its groups.
            rows: which of its rows.
            reasons: why each of them is left out, None if it is not.
            group: that group, with any columns.
        """
        if None not in reasons and not has_unreadable(group, rows):
            return placeholders(self._partition, group, rows, reasons)
        content = self._part.group(segment, index, CONTENT)
        return events_of(self._partition, content, rows, reasons, self._decoder)

    # -- from a place to the end ----------------------------------------------------------------

    def scan(
        self, plan: Plan, after: str, times: Times, damage: list[str] | None
    ) -> Iterator[LoggedEvent]:
        """See `Archive.scan`."""
        wanted = RowFilter(plan, self._part.shared.forgotten())

        def pages(segment: Segment, place: Moment) -> Iterator[tuple[Moment, list[LoggedEvent]]]:
            nonlocal wanted
            wanted = wanted.hiding(self._part.shared.forgotten())
            return self._wanted_pages(segment, place, wanted, times)

        for events in self._walk(parse_entry_id(after), pages, damage):
            yield from events

    def ids(self) -> Iterator[Sequence[str]]:
        """Yield the ids of all rows, a group at a time, also of those without content by now."""
        for rows in self._walk(parse_entry_id(START), self._places, None):
            yield [row.id for row in rows]

    def places(self, first: str, last: str) -> Iterator[SealedRow]:
        """Yield the rows from one entry to another, both included, in order."""
        (ms, sequence), end = parse_entry_id(first), parse_entry_id(last)
        for rows in self._walk((ms, sequence - 1), self._places, None):
            for row in rows:
                if parse_entry_id(row.entry) > end:
                    return
                yield row

    def _walk(
        self,
        place: Moment,
        pages: Callable[[Segment, Moment], Iterator[tuple[Moment, _T]]],
        damage: list[str] | None,
    ) -> Iterator[_T]:
        """Yield what `pages` finds in each segment after a place.

        Args:
            place: where to begin, exclusive.
            pages: yields what is in a segment after a place, each time with how far that goes.
            damage: if given, what cannot be read is told here, and the rest is read.
        """
        while (segment := self._following(place, damage)) is not None:
            try:
                for reached, found in pages(segment, place):
                    yield found
                    place = reached
            except ArchiveError as error:
                if self._part.is_replaced(segment, place):
                    continue
                if not isinstance(error, ArchiveDamaged):
                    raise
                tell(error, damage)
            place = parse_entry_id(segment.last.entry)

    def _following(self, place: Moment, damage: list[str] | None) -> Segment | None:
        try:
            return self._part.after(place)
        except ArchiveDamaged as error:
            tell(error, damage)
            return self._part.beyond(place)

    def _wanted_pages(
        self, segment: Segment, place: Moment, wanted: RowFilter, times: Times
    ) -> Iterator[tuple[Moment, list[LoggedEvent]]]:
        """Yield a segment's wanted rows after a place, each time with how far they go."""
        if _may_pass(segment, wanted) or _is_untimely(segment, times):
            return
        timed = ("at",) if times != (None, None) else ()
        names = (*(wanted.reads if wanted.filters else ()), *timed) or CONTENT
        reader = self._part.opened(segment)
        for index in range(reader.group_after(place), reader.groups):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, names)
                rows = range(rows_after(group, place), len(group.entries))
                reasons = wanted.reasons(self._partition, group, rows)
                if timed:
                    at = numbers(group.table.column("at"), "q")[rows.start :]
                    _leave_out(reasons, at, times)
            for some, why in _pages(rows, reasons):
                if None in why:
                    with self._part.naming_file(segment):
                        found = self._wanted_events(segment, index, some, why)
                        reached = parse_entry_id(group.entries[some[-1]])
                    yield reached, found

    def _wanted_events(
        self, segment: Segment, index: int, rows: range, why: Reasons
    ) -> list[LoggedEvent]:
        """Return the wanted rows of a page, but for what was not kept."""
        content = self._part.group(segment, index, CONTENT)
        if not any(why):
            found = events_of(self._partition, content, rows, why, self._decoder)
            if are_plausible([one.envelope for one in found]):  # also where another wrote them
                return [one for one in found if not isinstance(one.envelope.event, Omitted)]
        chosen = [row for row, reason in zip(rows, why, strict=True) if reason is None]
        return wanted_events(self._partition, content, chosen, self._decoder)

    def _places(
        self, segment: Segment, place: Moment
    ) -> Iterator[tuple[Moment, Sequence[SealedRow]]]:
        """Yield where a segment's rows after a place lie, a group at a time."""
        reader = self._part.opened(segment)
        for index in range(reader.group_after(place), reader.groups):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, ("id",))
                rows = range(rows_after(group, place), group.cut.count)
                ids = hex_ids(group.table.column("id"))
                found = [SealedRow(group.entries[r], group.numbers[r], ids[r]) for r in rows]
                reached = parse_entry_id(group.entries[group.cut.count - 1])
            yield reached, found

    # -- backward -------------------------------------------------------------------------------

    def back(self, before: str, plan: Plan, damage: list[str] | None) -> Iterator[LoggedEvent]:
        """See `Archive.back`."""
        wanted = RowFilter(plan, self._part.shared.forgotten())
        place = parse_entry_id(before)
        segments = self._part.refreshed().segments
        while (segment := last_before(segments, place)) is not None:
            wanted = wanted.hiding(self._part.shared.forgotten())
            last = parse_entry_id(segment.last.entry)
            if last < place:
                self._check(last, damage)
            try:
                for event in self._backward(segment, place, wanted):
                    yield event
                    place = parse_entry_id(event.position.entry)
            except ArchiveError as error:  # an object store does not give what was deleted
                self._part.forget()
                segments = self._part.refreshed().segments
                again = last_before(segments, place)
                if again is not None and again.sha256 != segment.sha256:
                    continue  # it was compacted away meanwhile
                if not isinstance(error, ArchiveDamaged):
                    raise
                tell(error, damage)
            place = parse_entry_id(segment.first.entry)
        self._check(_BEGINNING, damage)

    def _check(self, place: Moment, damage: list[str] | None) -> None:
        """Tell if what follows a place is missing in the manifest."""
        try:
            self._part.after(place)
        except ArchiveDamaged as error:
            tell(error, damage)

    def _backward(
        self, segment: Segment, place: Moment, wanted: RowFilter
    ) -> Iterator[LoggedEvent]:
        """Yield a segment's rows before a moment; nothing if the manifest tells that all go."""
        if _may_pass(segment, wanted):
            return
        names = _names(wanted)
        for index in range(self._part.opened(segment).group_before(place), -1, -1):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, names)
                rows = range(row_before(group, place) + 1)
                reasons = wanted.reasons(self._partition, group, rows)
            for end in range(len(rows), 0, -_PAGE):
                some = rows[max(0, end - _PAGE) : end]
                why = reasons[some.start : some.stop]
                with self._part.naming_file(segment):
                    found = self._events(segment, index, some, why, group)
                yield from reversed(found)


def _pages(rows: range, reasons: Reasons) -> Iterator[tuple[range, Reasons]]:
    """Yield rows with why they are left out, so many as are decoded at once."""
    for start in range(0, len(rows), _PAGE):
        yield rows[start : start + _PAGE], reasons[start : start + _PAGE]


def _may_pass(segment: Segment, wanted: RowFilter) -> bool:
    """Say whether the manifest alone tells that nothing of a segment is wanted."""
    query = wanted.plan.query
    if query.sessions and not bloom.may_hold(segment.sessions, query.sessions):
        return True
    if query.upto and segment.since > query.upto:
        return True
    return _lacks_types(segment, query.types)


def _lacks_types(segment: Segment, types: Sequence[str]) -> bool:
    """Say whether the manifest tells that a segment has none of some types."""
    if not types or UnknownEvent.__name__ in types or not segment.types:
        return False  # which types are unknown to this release, no manifest tells
    return segment.types.keys().isdisjoint(types)


def _names(wanted: RowFilter) -> tuple[str, ...]:
    """Return the columns to read first: those that decide, or, if nothing does, the content."""
    return wanted.reads if wanted.filters else CONTENT


def _is_untimely(segment: Segment, times: Times) -> bool:
    since, until = times
    early = since is not None and segment.until < since
    return early or (until is not None and segment.since >= until)


def _leave_out(reasons: list[Omission | None], at: Sequence[int], times: Times) -> None:
    since, until = times
    for place, moment_ in enumerate(at):
        if (since is not None and moment_ < since) or (until is not None and moment_ >= until):
            reasons[place] = reasons[place] or "filtered"
