"""Builds tables and lines in the style of all commands; `safe` escapes every text."""

from collections.abc import Collection

from memorybus.config.settings import FILE_NAME
from memorybus.health.finding import Check
from rich.table import Table
from rich.text import Text

from memorybus_console.views.grid import Grid
from memorybus_console.views.safe import one_line, visible


def grid(*columns: str, texts: Collection[str] = ()) -> Table:
    """Return an empty table without a frame, which wraps only the columns `texts`."""
    return Grid(*columns, texts=texts)


def add_row(table: Table, *cells: object) -> None:
    """Add a row to a table; each cell is escaped and put on one line.

    Args:
        cells: a styled `cell`, None for "-", or a value for `str`.
    """
    table.add_row(*(one if isinstance(one, Text) else cell(one) for one in cells))


def cell(value: object, style: str = "") -> Text:
    """Return a styled cell, escaped and on one line."""
    return Text(one_line("-" if value is None else str(value)), style=style)


def line(text: str, style: str = "") -> Text:
    """Return a text with its line breaks, escaped."""
    return Text(visible(text), style=style)


def settings_source(settings_file: str) -> str:
    """Return in words which settings file was read; "" stands for none."""
    return settings_file or f"no {FILE_NAME} here, so none was read"


def rate(per_second: float | None) -> str | None:
    """Return events a second in a few characters; None if that is unknown."""
    if per_second is None:
        return None
    return f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"


def remedy(text: str) -> Text:
    """Return what to do, as a line below the problem."""
    return line(f"\n    → {text}", "yellow")


def check_line(check: Check) -> Text:
    """Return a check as a line, with its remedy below if it failed or warns."""
    sound = ("!", "yellow") if check.fix else ("✓", "green")
    mark = sound if check.ok else ("✗", "bold red")
    text = Text.assemble(mark, f" {visible(check.name):<16} {visible(check.found)}")
    return text.append_text(remedy(check.fix)) if check.fix else text
