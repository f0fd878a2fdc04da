"""Reads one partition's sealed rows: forward, backward, by page and by place."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from memorybus.archive.decoding import (
    RowFilter,
    events_of,
    first_row_after,
    has_unreadable,
    last_row_before,
    placeholders,
    wanted_events,
)
from memorybus.archive.format import bloom
from memorybus.archive.format.columns import hex_ids, integers_of
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.reader import CONTENT_COLUMNS, Group
from memorybus.archive.partition import SealedPartition, last_segment_before
from memorybus.archive.tombstones import RAISE_DAMAGE, DamageHandler
from memorybus.errors import ArchiveDamaged, ArchiveError
from memorybus.events import Omission, Omitted, UnknownEvent
from memorybus.log.entry import EntryMoment, LoggedEvent, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder, are_plausible

_PAGE = 100  # how many rows are decoded at once: more of them do not fit into a processor's cache
_BEGINNING = (0, 0)
Times = tuple[int | None, int | None]
"""The earliest time of an event, and the time before which events are wanted (milliseconds)."""

Reasons = Sequence[Omission | None]
"""For each row the reason why it is left out; None if it is wanted."""

_T = TypeVar("_T")


class SealedRow(msgspec.Struct, frozen=True):
    """Where a sealed event lies: its stream entry's id, its dense number, and the event's id."""

    entry: str
    n: int
    id: str


class SealedRows:
    """Reads one partition's rows, also while a segment is replaced. Belongs to one thread."""

    def __init__(self, part: SealedPartition, decoder: Decoder) -> None:
        self._part = part
        self._decoder = decoder
        self._partition = part.of.partition

    # -- a page ---------------------------------------------------------------------------------

    def read(self, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        wanted = RowFilter(plan, self._part.shared.forgotten_queries())
        collected: list[LoggedEvent] = []
        place = parse_entry_id(after)
        while len(collected) < count:
            try:
                page = self._next_page(place, count - len(collected), wanted)
            except ArchiveDamaged:
                if not collected:
                    raise
                break  # return what was read; the next call raises the error
            if page is None:
                break
            place, events = page
            collected += events
        return collected

    def _next_page(
        self, place: EntryMoment, count: int, wanted: RowFilter
    ) -> tuple[EntryMoment, list[LoggedEvent]] | None:
        """Return some rows of one group, and the last row's place; None if nothing follows."""
        while (segment := self._part.segment_after(place)) is not None:
            try:
                with self._part.naming_file(segment):
                    return self._read_group(segment, place, count, wanted)
            except ArchiveError:  # an object store does not return a deleted file
                if not self._part.is_replaced(segment, place):
                    raise
        return None

    def _read_group(
        self, segment: Segment, place: EntryMoment, count: int, wanted: RowFilter
    ) -> tuple[EntryMoment, list[LoggedEvent]]:
        passed = _may_skip(segment, wanted)
        names = () if passed else _first_columns(wanted)
        index, row, group = self._find_row_after(segment, place, names)
        rows = range(row, min(row + count, len(group.entries)))
        if names == CONTENT_COLUMNS and count > _PAGE:  # a caller that reads much will read on
            self._part.read_ahead(segment, index + 1, CONTENT_COLUMNS)
        reasons: Reasons = ["filtered"] * len(rows)
        if not passed:
            reasons = wanted.reasons(self._partition, group, rows)
        events: list[LoggedEvent] = []
        for some, why in _pages(rows, reasons):
            events += self._events(segment, index, some, why, group)
        return parse_entry_id(group.entries[rows[-1]]), events

    def _find_row_after(
        self, segment: Segment, place: EntryMoment, names: tuple[str, ...]
    ) -> tuple[int, int, Group]:
        index = self._part.group_after(segment, place)
        group = self._part.group(segment, index, names)
        row = first_row_after(group, place)
        if row < len(group.entries):
            return index, row, group
        return index + 1, 0, self._part.group(segment, index + 1, names)

    def last_before(self, place: EntryMoment) -> LoggedEvent | None:
        wanted = RowFilter(Plan(), self._part.shared.forgotten_queries())
        while (segment := self._part.segment_before(place)) is not None:
            with self._part.naming_file(segment):
                index = self._part.open_segment(segment).group_before(place)
                group = self._part.group(segment, index, CONTENT_COLUMNS)
                row = last_row_before(group, place)
                rows = range(row, row + 1)
                named = self._part.group(segment, index, _first_columns(wanted))
                reasons = wanted.reasons(self._partition, named, rows)
                events = self._events(segment, index, rows, reasons, group)
                place = parse_entry_id(group.entries[row])
            if events:
                return events[0]
        return None

    def _events(
        self, segment: Segment, index: int, rows: range, reasons: Reasons, group: Group
    ) -> list[LoggedEvent]:
        """Return the events of some rows; the content is only read if one of them is wanted."""
        if None not in reasons and not has_unreadable(group, rows):
            return placeholders(self._partition, group, rows, reasons)
        content = self._part.group(segment, index, CONTENT_COLUMNS)
        return events_of(self._partition, content, rows, reasons, self._decoder)

    # -- from a place to the end ----------------------------------------------------------------

    def scan(
        self, plan: Plan, after: str, times: Times, damage: DamageHandler
    ) -> Iterator[LoggedEvent]:
        wanted = RowFilter(plan, self._part.shared.forgotten_queries())

        def pages(
            segment: Segment, place: EntryMoment
        ) -> Iterator[tuple[EntryMoment, list[LoggedEvent]]]:
            nonlocal wanted
            wanted = wanted.with_forgotten(self._part.shared.forgotten_queries())
            return self._wanted_pages(segment, place, wanted, times)

        for events in self._walk(parse_entry_id(after), pages, damage):
            yield from events

    def ids(self) -> Iterator[Sequence[str]]:
        for rows in self._walk(parse_entry_id(START), self._places, RAISE_DAMAGE):
            yield [row.id for row in rows]

    def places(self, first: str, last: str) -> Iterator[SealedRow]:
        """Yield the rows from one entry to another, both included, in order."""
        (ms, sequence), end = parse_entry_id(first), parse_entry_id(last)
        for rows in self._walk((ms, sequence - 1), self._places, RAISE_DAMAGE):
            for row in rows:
                if parse_entry_id(row.entry) > end:
                    return
                yield row

    def _walk(
        self,
        place: EntryMoment,
        pages: Callable[[Segment, EntryMoment], Iterator[tuple[EntryMoment, _T]]],
        damage: DamageHandler,
    ) -> Iterator[_T]:
        """Yield what `pages` finds in each segment after a place, exclusive."""
        while (segment := self._next_segment(place, damage)) is not None:
            try:
                for reached, items in pages(segment, place):
                    yield items
                    place = reached
            except ArchiveError as error:
                if self._part.is_replaced(segment, place):
                    continue
                if not isinstance(error, ArchiveDamaged):
                    raise
                damage.add(error)
            place = parse_entry_id(segment.last.entry)

    def _next_segment(self, place: EntryMoment, damage: DamageHandler) -> Segment | None:
        try:
            return self._part.segment_after(place)
        except ArchiveDamaged as error:
            damage.add(error)
            return self._part.known_segment_after(place)

    def _wanted_pages(
        self, segment: Segment, place: EntryMoment, wanted: RowFilter, times: Times
    ) -> Iterator[tuple[EntryMoment, list[LoggedEvent]]]:
        if _may_skip(segment, wanted) or _is_outside(segment, times):
            return
        timed = ("at",) if times != (None, None) else ()
        names = (*(wanted.columns_to_read if wanted.may_omit else ()), *timed) or CONTENT_COLUMNS
        reader = self._part.open_segment(segment)
        for index in range(reader.group_after(place), reader.groups):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, names)
                rows = range(first_row_after(group, place), len(group.entries))
                reasons = wanted.reasons(self._partition, group, rows)
                if timed:
                    at = integers_of(group.table.column("at"), "q")[rows.start :]
                    _leave_out(reasons, at, times)
            for some, why in _pages(rows, reasons):
                if None in why:
                    with self._part.naming_file(segment):
                        events = self._wanted_events(segment, index, some, why)
                        reached = parse_entry_id(group.entries[some[-1]])
                    yield reached, events

    def _wanted_events(
        self, segment: Segment, index: int, rows: range, why: Reasons
    ) -> list[LoggedEvent]:
        content = self._part.group(segment, index, CONTENT_COLUMNS)
        if not any(why):
            events = events_of(self._partition, content, rows, why, self._decoder)
            envelopes = [event.envelope for event in events]
            if are_plausible(envelopes):  # another program may have written
                return [event for event in events if not isinstance(event.envelope.event, Omitted)]
        chosen = [row for row, reason in zip(rows, why, strict=True) if reason is None]
        return wanted_events(self._partition, content, chosen, self._decoder)

    def _places(
        self, segment: Segment, place: EntryMoment
    ) -> Iterator[tuple[EntryMoment, Sequence[SealedRow]]]:
        reader = self._part.open_segment(segment)
        for index in range(reader.group_after(place), reader.groups):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, ("id",))
                rows = range(first_row_after(group, place), group.summary.count)
                ids = hex_ids(group.table.column("id"))
                page = [SealedRow(group.entries[r], group.numbers[r], ids[r]) for r in rows]
                reached = parse_entry_id(group.entries[group.summary.count - 1])
            yield reached, page

    # -- backward -------------------------------------------------------------------------------

    def read_backward(
        self, before: str, plan: Plan, damage: DamageHandler
    ) -> Iterator[LoggedEvent]:
        wanted = RowFilter(plan, self._part.shared.forgotten_queries())
        place = parse_entry_id(before)
        segments = self._part.newest_manifest().segments
        while (segment := last_segment_before(segments, place)) is not None:
            wanted = wanted.with_forgotten(self._part.shared.forgotten_queries())
            last = parse_entry_id(segment.last.entry)
            if last < place:
                self._check_gap(last, damage)
            try:
                for event in self._read_segment_backward(segment, place, wanted):
                    yield event
                    place = parse_entry_id(event.position.entry)
            except ArchiveError as error:  # an object store does not return a deleted file
                self._part.reopen()
                segments = self._part.newest_manifest().segments
                again = last_segment_before(segments, place)
                if again is not None and again.sha256 != segment.sha256:
                    continue  # compaction has replaced the segment meanwhile
                if not isinstance(error, ArchiveDamaged):
                    raise
                damage.add(error)
            place = parse_entry_id(segment.first.entry)
        self._check_gap(_BEGINNING, damage)

    def _check_gap(self, place: EntryMoment, damage: DamageHandler) -> None:
        """Report damage if the manifest has lost the segment that follows a place."""
        try:
            self._part.segment_after(place)
        except ArchiveDamaged as error:
            damage.add(error)

    def _read_segment_backward(
        self, segment: Segment, place: EntryMoment, wanted: RowFilter
    ) -> Iterator[LoggedEvent]:
        """Yield a segment's rows before a moment; none if the manifest shows none is wanted."""
        if _may_skip(segment, wanted):
            return
        names = _first_columns(wanted)
        for index in range(self._part.open_segment(segment).group_before(place), -1, -1):
            with self._part.naming_file(segment):
                group = self._part.group(segment, index, names)
                rows = range(last_row_before(group, place) + 1)
                reasons = wanted.reasons(self._partition, group, rows)
            for end in range(len(rows), 0, -_PAGE):
                some = rows[max(0, end - _PAGE) : end]
                why = reasons[some.start : some.stop]
                with self._part.naming_file(segment):
                    events = self._events(segment, index, some, why, group)
                yield from reversed(events)


def _pages(rows: range, reasons: Reasons) -> Iterator[tuple[range, Reasons]]:
    for start in range(0, len(rows), _PAGE):
        yield rows[start : start + _PAGE], reasons[start : start + _PAGE]


def _may_skip(segment: Segment, wanted: RowFilter) -> bool:
    """Return whether the manifest alone tells that no row of a segment is wanted."""
    query = wanted.plan.query
    if query.sessions and not bloom.may_hold(segment.sessions, query.sessions):
        return True
    if query.upto and segment.since > query.upto:
        return True
    return _lacks_types(segment, query.types)


def _lacks_types(segment: Segment, types: Sequence[str]) -> bool:
    if not types or UnknownEvent.__name__ in types or not segment.types:
        return False  # the manifest does not tell which types this release does not know
    return segment.types.keys().isdisjoint(types)


def _first_columns(wanted: RowFilter) -> tuple[str, ...]:
    """Return the columns to read first: those that the filter needs, or the content without one."""
    return wanted.columns_to_read if wanted.may_omit else CONTENT_COLUMNS


def _is_outside(segment: Segment, times: Times) -> bool:
    since, until = times
    early = since is not None and segment.until < since
    return early or (until is not None and segment.since >= until)


def _leave_out(reasons: list[Omission | None], at: Sequence[int], times: Times) -> None:
    since, until = times
    for place, moment_ in enumerate(at):
        if (since is not None and moment_ < since) or (until is not None and moment_ >= until):
            reasons[place] = reasons[place] or "filtered"
