"""A table that is filled again every second, and keeps its cursor and scroll position."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widgets import DataTable

from memorybus_console.top.rows import TableRow

_WORDS: Final = ("provider", "state", "lane", "group", "type", "reason", "key")
_EVENTS: Final = ("time", "session", "what")
"""The columns of text. All others hold numbers: heads and cells are right-aligned."""

MAX_ROWS: Final = 500
"""The most rows that are shown (G10); the filter finds others."""


class LiveTable(DataTable[Text]):
    """A table of rows that are identified by their keys.

    Args:
        columns: the heads of the columns.
        name: the table's id on the screen.
    """

    def __init__(self, columns: Sequence[str], name: str) -> None:
        super().__init__(id=name, cursor_type="row")
        self._heads = tuple(columns)
        self._rows: tuple[TableRow, ...] = ()

    def on_mount(self) -> None:
        """Create the columns."""
        for head in self._heads:
            is_word = head in (*_WORDS, *_EVENTS)
            label = Text(head, justify="left" if is_word else "right")
            self.add_column(label, key=head, width=label.cell_len)

    @property
    def current(self) -> TableRow | None:
        """The row under the cursor; None if there is none."""
        return self._rows[self.cursor_row] if self.cursor_row < len(self._rows) else None

    def show(self, rows: Sequence[TableRow]) -> None:
        """Replace the rows by these, or by the first `MAX_ROWS` of them.

        All rows are created again, because a change of a single cell measures its whole column. The
        cursor stays on its row, if that still exists, and the scroll position stays.
        """
        before, self._rows = self._rows, tuple(rows[:MAX_ROWS])
        if self._rows == before:
            return
        stood = before[self.cursor_row].key if self.cursor_row < len(before) else None
        place = self.scroll_offset
        self.clear()
        self._widen_columns()
        for row in self._rows:
            self.add_row(*row.cells)
        found = [number for number, row in enumerate(self._rows) if row.key == stood]
        if found:
            self.move_cursor(row=found[0], scroll=False)
            self.call_after_refresh(self.scroll_to, place.x, place.y, animate=False)

    def _widen_columns(self) -> None:
        """Make room for the widest cells; no column becomes narrower while somebody reads.

        Textual would measure the cells itself, but later, when it is idle. On a busy machine it
        draws the rows before, and keeps what it drew: cut off to the width of the heads.
        """
        for number, column in enumerate(self.ordered_columns):
            widest = max((row.cells[number].cell_len for row in self._rows), default=0)
            column.width = max(column.width, widest)
