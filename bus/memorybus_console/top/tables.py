"""The rows of each view, and a table that keeps its cursor and scroll position."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from memorybus.dead_letters.queue import LocatedLetter
from memorybus.health.verdict import BusState
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import lane_name
from memorybus.registry.lanes import LaneState
from memorybus.text.display import iso, one_line
from rich.text import Text
from textual.widgets import DataTable

from memorybus_console.result import Column
from memorybus_console.views.dead_letters import letters_by_error, letters_by_key
from memorybus_console.views.events import event_head, summary
from memorybus_console.views.presenter import cell_of, columns_of, title_of
from memorybus_console.views.status import ProviderRow, provider_row

Columns = Mapping[str, Column]

_SHOWN: Final = {
    "backlog": Column(style="yellow"),
    "refused": Column(style="red"),
    "behind": Column(style="red"),
    "events": Column(title="waiting"),
    "error": Column(title="group"),
}


def _columns(names: str) -> Columns:
    return {name: _SHOWN.get(name, Column()) for name in names.split()}


PROVIDERS: Final = columns_of(ProviderRow)
LANES: Final = _columns("provider lane state backlog applied of refused behind")
KEYS: Final = _columns("provider events tries error type reason key")
ERRORS: Final = _columns("provider keys events error reason")
EVENTS: Final = _columns("time type session what")

MAX_ROWS: Final = 500  # the most rows that are shown (G10); the filter finds others

_SESSION, _TYPE = 14, 16  # the most characters of some columns; the commands show the whole text


class TableRow(msgspec.Struct, frozen=True):
    """One line of a table.

    Attributes:
        name: what the row shows of the provider: a lane, a dead letter's key or error; an event's
            id. Actions and the cursor find the row by both.
    """

    provider: str  # the provider that the row shows; "" if it shows none
    name: str
    values: tuple[Any, ...]

    def contains(self, words: str) -> bool:
        """Return whether the cells contain a text, in upper or lower case."""
        return words.lower() in " ".join(map(str, self.values)).lower()


def provider_rows(bus: BusState) -> list[TableRow]:
    rows = [provider_row(each, bus.at_ms) for each in (bus.status.providers if bus.status else ())]
    return [TableRow(row.provider, "", msgspec.structs.astuple(row)) for row in rows]


def lane_rows(bus: BusState, only: str = "") -> list[TableRow]:
    """Return a row for each lane of the live instances, or of one's; the largest backlog first."""
    lanes = [
        (lane, provider.name, lane_name(partition))
        for provider in (bus.status.providers if bus.status else ())
        if only in ("", provider.name)
        for partition, lane in enumerate(bus.lanes.get(provider.live or provider.name, ()))
    ]
    lanes.sort(key=lambda row: -row[0].backlog)
    return [TableRow(name, part, (name, part, *_figures(lane))) for lane, name, part in lanes]


def _figures(lane: LaneState) -> tuple[Any, ...]:
    state = Text("owned", "green") if lane.owned else Text("no owner", "yellow")
    state = Text("halted", "bold red") if lane.halted else state
    return state, lane.backlog, lane.n, lane.head, lane.refused, lane.waiting_behind


def letter_rows(letters: Sequence[LocatedLetter], columns: Columns) -> list[TableRow]:
    """Return a row for each key that waits behind a dead letter, or for each kind of refusal."""
    group, name = (letters_by_error, "error") if columns is ERRORS else (letters_by_key, "key")
    return [
        TableRow(row.provider, getattr(row, name), tuple(getattr(row, each) for each in columns))
        for row in group(letters)
    ]


def event_row(logged: LoggedEvent) -> TableRow:
    envelope = logged.envelope
    time, head = Text((iso(envelope.at) or "-")[11:19], "dim"), event_head(envelope.event, _TYPE)
    session = one_line(envelope.session.id, _SESSION)
    return TableRow("", envelope.id, (time, Text(*head), session, summary(envelope.event)))


class LiveTable(DataTable[Text]):
    """A table that is filled again every second."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row")
        self._shown: Columns = {}
        self._rows: tuple[TableRow, ...] = ()

    @property
    def current(self) -> TableRow | None:
        """The row under the cursor; None if there is none."""
        return self._rows[self.cursor_row] if self.cursor_row < len(self._rows) else None

    def cells(self, row: TableRow) -> Iterator[Text]:
        """Yield a row's cells; numbers are at the right."""
        for value, column in zip(row.values, self._shown.values(), strict=True):
            cell = cell_of(value, column)
            cell.justify = "right" if isinstance(value, int | float | None) else "left"
            yield cell

    def show(self, columns: Columns, rows: Sequence[TableRow]) -> None:
        """Replace the rows by these, or by the first `MAX_ROWS` of them.

        All rows are created again, because a change of a single cell measures its whole column. The
        cursor stays on its row, if that still exists, and the scroll position stays.
        """
        if self._shown is not columns:
            self.clear(columns=True)
            self._shown, self._rows = columns, ()
            for name, column in columns.items():
                self.add_column(title_of(name, column), width=len(title_of(name, column)))
        before, self._rows = self._rows, tuple(rows[:MAX_ROWS])
        if self._rows != before:
            self._fill([(row.provider, row.name) for row in before[self.cursor_row :][:1]])

    def _fill(self, under: Sequence[tuple[str, str]]) -> None:
        """Write the rows; put the cursor on the row that was under it.

        No column becomes narrower while somebody reads. Textual would measure the cells itself, but
        later, when it is idle: on a busy machine it draws them cut off to the width of the heads.
        """
        place, shown = self.scroll_offset, [tuple(self.cells(row)) for row in self._rows]
        self.clear()
        for column, cells in zip(self.ordered_columns, zip(*shown, strict=True), strict=False):
            column.width = max(column.width, *(cell.cell_len for cell in cells))
        for cells in shown:
            self.add_row(*cells)
        for number, row in enumerate(self._rows):
            if (row.provider, row.name) in under:
                self.move_cursor(row=number, scroll=False)
                self.call_after_refresh(self.scroll_to, place.x, place.y, animate=False)
