"""A table that is shown anew every second, and keeps its cursor and its place."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widgets import DataTable

from memorybus.surfaces.top.rows import Row

_WORDS: Final = ("provider", "state", "lane", "group", "type", "reason", "key")
_EVENTS: Final = ("time", "session", "what")
"""Columns of words; the heads of numbers stand to the right, as what is below them."""

MOST: Final = 500
"""Rows that are shown (G10): somebody who looks for others narrows them."""


class Grid(DataTable[Text]):
    """Rows by their keys.

    Args:
        columns: the heads.
        name: its id on the screen.
    """

    def __init__(self, columns: Sequence[str], name: str) -> None:
        """Show nothing yet."""
        super().__init__(id=name, cursor_type="row")
        self._heads = tuple(columns)
        self._rows: tuple[Row, ...] = ()

    def on_mount(self) -> None:
        """Make the columns."""
        for head in self._heads:
            is_word = head in (*_WORDS, *_EVENTS)
            self.add_column(Text(head, justify="left" if is_word else "right"), key=head)

    @property
    def current(self) -> Row | None:
        """The row under the cursor; None if there is none."""
        return self._rows[self.cursor_row] if self.cursor_row < len(self._rows) else None

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows, or the first of them, in place of the last ones.

        All are made anew: changing single cells measures the whole column each time. The cursor
        stays with its row, if that is still there, and what is seen stays where it was.
        """
        before, self._rows = self._rows, tuple(rows[:MOST])
        if self._rows == before:
            return
        stood = before[self.cursor_row].key if self.cursor_row < len(before) else ""
        place = self.scroll_offset
        self.clear()
        for row in self._rows:
            self.add_row(*row.cells, key=row.key)
        found = [number for number, row in enumerate(self._rows) if row.key == stood]
        if found:
            self.move_cursor(row=found[0], scroll=False)
            self.call_after_refresh(self.scroll_to, place.x, place.y, animate=False)
