"""Rows of a segment as events: which are wanted, by their columns; only those are decoded."""

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
from memorybus.log.entry import OMITTED, LoggedEvent, decode_entry, number_of, parse_entry_id
from memorybus.query.query import EVERYTHING, EventRow, Query
from memorybus.query.ranges import Plan
from memorybus.wire.codec import Decoder

KINDS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in EVENT_TYPES}

_ANSWERS = 10_000

_LATER = (1 << 63) - 1
"""Later than any query's end."""

_NOTHING = EventRow("", "", "", "", "", "", "", "")

_ASKED = (
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
"""Which columns a query looks at."""


def asked_of(query: Query) -> tuple[str, ...]:
    """Return the fields of `EventRow` that a query looks at."""
    return tuple(name for name, fields in _ASKED if any(getattr(query, f) for f in fields))


def seen_type(name: str, version: int) -> str:
    """Return what an event of this type and version is for this release, as `row_of` would."""
    kind = KINDS.get(name)
    return UnknownEvent.__name__ if kind is None or version > kind.version else name


class RowFilter(msgspec.Struct, frozen=True):
    """What a reader wants of the rows.

    Attributes:
        plan: spans, and a query.
        forgotten: what nobody shall read any more.
        answers: what the queries said of a cell, so that each is asked once; at most `_ANSWERS`.
    """

    plan: Plan
    forgotten: tuple[Query, ...] = ()
    answers: dict[str, Omission | None] = {}

    @property
    def filters(self) -> bool:
        """Whether anything can be left out."""
        return bool(self.plan.query != EVERYTHING or self.forgotten or self.plan.spans)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that decide it; the type is told by its version, too."""
        found = {name for query in (self.plan.query, *self.forgotten) for name in asked_of(query)}
        return tuple(sorted(found))

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns to read for that."""
        return (*self.needs, *(("v",) if "type" in self.needs else ()))

    def hiding(self, forgotten: tuple[Query, ...]) -> "RowFilter":
        """Return the same for what is forgotten by now."""
        return self if forgotten == self.forgotten else RowFilter(self.plan, forgotten)

    def reasons(self, partition: int, group: Group, rows: range) -> list[Omission | None]:
        """Return for each row why it is left out, None if it is wanted."""
        spans = self.plan.spans.get(partition)
        found: list[Omission | None] = [None] * len(rows)
        if self.plan.query != EVERYTHING or self.forgotten:
            found = self._asked(group, rows)
        if spans is not None:
            takes = self.plan.takes
            for place, n in enumerate(group.numbers[rows.start : rows.stop]):
                if not takes(partition, n):
                    found[place] = "filtered"
        return found

    def _asked(self, group: Group, rows: range) -> list[Omission | None]:
        """Return why the queries leave rows out: each combination of cells is asked once."""
        needs = self.needs
        if len(needs) == 1 and needs[0] not in ("id", "type", "at"):
            words, numbers = group.coded(needs[0])
            reasons = [self._answer(needs, word) for word in words]
            return [reasons[number] for number in numbers[rows.start : rows.stop]]
        known: dict[tuple[str | int, ...], Omission | None] = {}
        all_cells = list(self._cells_of(group, rows))
        for cells in set(all_cells):
            known[cells] = self._reason(_row(needs, cells))
        return [known[cells] for cells in all_cells]

    def _cells_of(self, group: Group, rows: range) -> Iterator[tuple[str | int, ...]]:
        """Yield the cells that decide, row by row."""
        columns_ = [self._column(group, name)[rows.start : rows.stop] for name in self.needs]
        return zip(*columns_, strict=True) if columns_ else iter([()] * len(rows))

    def _column(self, group: Group, name: str) -> Sequence[str | int]:
        if name == "at":
            return self._before(columns.numbers(group.table.column("at"), "q"))
        return _column(group, name)

    def _before(self, times: Sequence[int]) -> list[int]:
        """Return for each time the next one at which a query ends: so few cells differ."""
        queries = (self.plan.query, *self.forgotten)
        ends = sorted({query.upto for query in queries if query.upto})
        return [
            ends[at] if at < len(ends) else _LATER for at in map(partial(bisect_left, ends), times)
        ]

    def _answer(self, needs: Sequence[str], word: str) -> Omission | None:
        """Return why rows with this cell are left out, where nothing else decides."""
        if word not in self.answers:
            if len(self.answers) >= _ANSWERS:
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
        versions = columns.numbers(group.table.column("v"), "i")
        return list(map(seen_type, group.words("type"), versions))
    return group.words(name)


def _row(needs: Sequence[str], cells: Sequence[str | int]) -> EventRow:
    """Return what a query looks at; what nobody looks at is empty."""
    known = dict(zip(needs, cells, strict=True))
    return msgspec.structs.replace(_NOTHING, **known)


def events_of(
    partition: int, group: Group, rows: range, reasons: Sequence[Omission | None], decoder: Decoder
) -> list[LoggedEvent]:
    """Return the events of some rows, of a group with `CONTENT`.

    What is left out, or was not kept, comes as a placeholder.
    """
    if group.cut.is_plain and not any(reasons):
        envelopes = decoder.decode_all(list(group.envelopes.some(rows)))
        if all(envelopes):
            places = _places(partition, group, rows)
            return list(map(LoggedEvent, places, cast("list[Envelope]", envelopes)))
    kinds, omitted = group.words("kind"), group.words("omitted")
    found = (
        _event(position, kinds[row], omitted[row] or reason, group.envelopes[row], decoder)
        for row, position, reason in zip(
            rows, _places(partition, group, rows), reasons, strict=True
        )
    )
    return [event for event in found if event is not None]


def wanted_events(
    partition: int, group: Group, rows: Sequence[int], decoder: Decoder
) -> list[LoggedEvent]:
    """Return the events of some rows, of a group with `CONTENT`, but for what was not kept."""
    kinds, omitted = group.words("kind"), group.words("omitted")
    found = (
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
    return [event for event in found if event is not None]


def has_unreadable(group: Group, rows: range) -> bool:
    """Say whether some rows hold raw fields, of which only the content tells whose they are."""
    return not group.cut.is_plain and UNREADABLE in group.words("kind")[rows.start : rows.stop]


def placeholders(
    partition: int, group: Group, rows: range, reasons: Sequence[Omission | None]
) -> list[LoggedEvent]:
    """Return some rows of which nothing is wanted."""
    left_out = [OMITTED[reason or "filtered"] for reason in reasons]
    return list(map(LoggedEvent, _places(partition, group, rows), left_out))


def _places(partition: int, group: Group, rows: range) -> Iterator[Position]:
    numbers = group.numbers[rows.start : rows.stop]
    return map(Position, repeat(partition), group.entries.some(rows), numbers)


def _event(
    position: Position, kind: str, why: str | None, body: memoryview, decoder: Decoder
) -> LoggedEvent | None:
    """Return one event as the log would give it; None for an entry that somebody else wrote.

    An older archive may hold such entries.
    """
    if kind != UNREADABLE:
        fields = [b"n", b"%d" % position.n, kind.encode(), bytes(body)]
    else:
        fields = msgspec.msgpack.decode(body, type=list[bytes]) if body else []
        if body and number_of(fields) is None:
            return None
    if why:
        return LoggedEvent(position, OMITTED[cast("Omission", why)])
    return decode_entry(position.partition, position.entry, fields, decoder)


def rows_after(group: Group, after: tuple[int, int]) -> int:
    """Return the first row of a group that comes after a moment."""
    return bisect_right(group.entries, after, key=parse_entry_id)


def row_before(group: Group, before: tuple[int, int]) -> int:
    """Return the last row of a group before a moment, -1 if there is none."""
    return bisect_left(group.entries, before, key=parse_entry_id) - 1
