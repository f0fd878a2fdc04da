"""Turns rows of a segment into events; the columns tell which rows are wanted and decoded."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import cast

import msgspec

from memorybus.archive.format import columns
from memorybus.archive.format.parquet import UNREADABLE
from memorybus.archive.format.reader import Group
from memorybus.events import EVENT_TYPES, Envelope, Event, Omission, Position, UnknownEvent
from memorybus.log.entry import (
    OMITTED_ENVELOPES,
    EntryMoment,
    LoggedEvent,
    decode_entry,
    number_of,
    parse_entry_id,
)
from memorybus.query.query import EVERYTHING, EventRow, Query
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

EVENT_TYPES_BY_NAME: Mapping[str, type[Event]] = {kind.__name__: kind for kind in EVENT_TYPES}
_MAX_CACHED_ANSWERS = 10_000
_AFTER_ANY_QUERY = (1 << 63) - 1  # a time later than the end of any query
_EMPTY_ROW = EventRow("", "", "", "", "", "", "", "")

_QUERY_FIELDS = (
    ("id", ("ids",)),
    ("session", ("sessions", "lineages", "except_sessions")),
    ("type", ("types",)),
    ("agent", ("agents", "except_agents")),
    ("user", ("users", "except_users")),
    ("workspace", ("workspaces",)),
    ("platform", ("platforms", "except_origins")),
    ("origin", ("except_origins",)),
    ("at", ("upto",)),
)
"""Each column, and the fields of a query that look at it."""


def queried_fields(query: Query) -> tuple[str, ...]:
    return tuple(name for name, fields in _QUERY_FIELDS if any(getattr(query, f) for f in fields))


def effective_type(name: str, version: int) -> str:
    """Return an event's type as this release sees it: unknown types and versions have one name."""
    kind = EVENT_TYPES_BY_NAME.get(name)
    return UnknownEvent.__name__ if kind is None or version > kind.version else name


class RowFilter(msgspec.Struct, frozen=True):
    """Decides which rows a reader gets."""

    plan: Plan  # the wanted spans and the query
    # the queries of the tombstones: nobody may read what they match
    forgotten: tuple[Query, ...] = ()
    # a cache of the decision for each cell; at most `_MAX_CACHED_ANSWERS`
    answers: dict[str, Omission | None] = {}

    @property
    def may_omit(self) -> bool:
        return bool(self.plan.query != EVERYTHING or self.forgotten or self.plan.spans)

    @property
    def deciding_columns(self) -> tuple[str, ...]:
        reasons = {
            name for query in (self.plan.query, *self.forgotten) for name in queried_fields(query)
        }
        return tuple(sorted(reasons))

    @property
    def columns_to_read(self) -> tuple[str, ...]:
        """The columns to read for the decision; a type also needs its version ``v``."""
        return (*self.deciding_columns, *(("v",) if "type" in self.deciding_columns else ()))

    def with_forgotten(self, forgotten: tuple[Query, ...]) -> "RowFilter":
        return self if forgotten == self.forgotten else RowFilter(self.plan, forgotten)

    def reasons(self, partition: int, group: Group, rows: range) -> list[Omission | None]:
        """Return for each row why it is left out; None if it is wanted."""
        spans = self.plan.spans.get(partition)
        reasons_by_row: list[Omission | None] = [None] * len(rows)
        if self.plan.query != EVERYTHING or self.forgotten:
            reasons_by_row = self._reasons_by_query(group, rows)
        if spans is not None:
            takes = self.plan.takes
            for place, n in enumerate(group.numbers[rows.start : rows.stop]):
                if not takes(partition, n):
                    reasons_by_row[place] = "filtered"
        return reasons_by_row

    def _reasons_by_query(self, group: Group, rows: range) -> list[Omission | None]:
        deciding_columns = self.deciding_columns
        if len(deciding_columns) == 1 and deciding_columns[0] not in ("id", "type", "at"):
            words, numbers = group.word_codes(deciding_columns[0])
            reasons = [self._reason_for_word(deciding_columns, word) for word in words]
            return [reasons[number] for number in numbers[rows.start : rows.stop]]
        known: dict[tuple[str | int, ...], Omission | None] = {}
        all_cells = list(self._cells_of(group, rows))
        for cells in set(all_cells):
            known[cells] = self._reason(_row(deciding_columns, cells))
        return [known[cells] for cells in all_cells]

    def _cells_of(self, group: Group, rows: range) -> Iterator[tuple[str | int, ...]]:
        columns_ = [
            self._column(group, name)[rows.start : rows.stop] for name in self.deciding_columns
        ]
        return zip(*columns_, strict=True) if columns_ else iter([()] * len(rows))

    def _column(self, group: Group, name: str) -> Sequence[str | int]:
        if name == "at":
            return self._next_ends(columns.integers_of(group.table.column("at"), "q"))
        return _column(group, name)

    def _next_ends(self, times: Sequence[int]) -> list[int]:
        """Return for each time the next end of a query, so that few different cells remain."""
        queries = (self.plan.query, *self.forgotten)
        ends = sorted({query.upto for query in queries if query.upto})
        return [
            ends[at] if at < len(ends) else _AFTER_ANY_QUERY
            for at in map(partial(bisect_left, ends), times)
        ]

    def _reason_for_word(self, needs: Sequence[str], word: str) -> Omission | None:
        if word not in self.answers:
            if len(self.answers) >= _MAX_CACHED_ANSWERS:
                self.answers.clear()
            self.answers[word] = self._reason(_row(needs, (word,)))
        return self.answers[word]

    def _reason(self, row: EventRow) -> Omission | None:
        if any(query.wants(row) for query in self.forgotten):
            return "forgotten"
        return None if self.plan.query.wants(row) else "filtered"


def _column(group: Group, name: str) -> list[str]:
    if name == "id":
        return columns.hex_ids(group.table.column("id"))
    if name == "type":
        versions = columns.integers_of(group.table.column("v"), "i")
        return list(map(effective_type, group.words("type"), versions))
    return group.words(name)


def _row(needs: Sequence[str], cells: Sequence[str | int]) -> EventRow:
    """Return a row with the cells that the queries look at; its other fields are empty."""
    values = dict(zip(needs, cells, strict=True))
    return msgspec.structs.replace(_EMPTY_ROW, **values)


def events_of(
    partition: int, group: Group, rows: range, reasons: Sequence[Omission | None], decoder: Decoder
) -> list[LoggedEvent]:
    if group.summary.is_plain and not any(reasons):
        envelopes = decoder.decode_all(list(group.envelopes.cells_in(rows)))
        if all(envelopes):
            places = _places(partition, group, rows)
            return list(map(LoggedEvent, places, cast("list[Envelope]", envelopes)))
    kinds, omitted = group.words("kind"), group.words("omitted")
    events = (
        _event(position, kinds[row], omitted[row] or reason, group.envelopes[row], decoder)
        for row, position, reason in zip(
            rows, _places(partition, group, rows), reasons, strict=True
        )
    )
    return [event for event in events if event is not None]


def wanted_events(
    partition: int, group: Group, rows: Sequence[int], decoder: Decoder
) -> list[LoggedEvent]:
    kinds, omitted = group.words("kind"), group.words("omitted")
    events = (
        _event(
            Position(partition, group.entries[row], group.numbers[row]),
            kinds[row],
            "",
            group.envelopes[row],
            decoder,
        )
        for row in rows
        if not omitted[row]
    )
    return [event for event in events if event is not None]


def has_unreadable(group: Group, rows: range) -> bool:
    """Return whether some rows hold raw fields; only their content tells whether they are ours."""
    return not group.summary.is_plain and UNREADABLE in group.words("kind")[rows.start : rows.stop]


def placeholders(
    partition: int, group: Group, rows: range, reasons: Sequence[Omission | None]
) -> list[LoggedEvent]:
    left_out = [OMITTED_ENVELOPES[reason or "filtered"] for reason in reasons]
    return list(map(LoggedEvent, _places(partition, group, rows), left_out))


def _places(partition: int, group: Group, rows: range) -> Iterator[Position]:
    numbers = group.numbers[rows.start : rows.stop]
    return map(Position, repeat(partition), group.entries.cells_in(rows), numbers)


def _event(
    position: Position, kind: str, why: str | None, body: memoryview, decoder: Decoder
) -> LoggedEvent | None:
    """Return one event as the log would return it; None for an entry that is not ours."""
    if kind != UNREADABLE:
        fields = [b"n", b"%d" % position.n, kind.encode(), bytes(body)]
    else:
        fields = msgspec.msgpack.decode(body, type=list[bytes]) if body else []
        if body and number_of(fields) is None:
            return None
    if why:
        return LoggedEvent(position, OMITTED_ENVELOPES[cast("Omission", why)])
    return decode_entry(position.partition, position.entry, fields, decoder)


def first_row_after(group: Group, after: EntryMoment) -> int:
    return bisect_right(group.entries, after, key=parse_entry_id)


def last_row_before(group: Group, before: EntryMoment) -> int:
    return bisect_left(group.entries, before, key=parse_entry_id) - 1
