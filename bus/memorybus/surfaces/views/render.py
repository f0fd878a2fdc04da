"""Tables and lines in the house style. Every text passes through `safe` on its way in."""

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from memorybus.config.settings import FILE_NAME
from memorybus.health.finding import Check
from memorybus.surfaces.views.safe import one_line, visible


def grid(*columns: str) -> Table:
    """Return an empty table: no frame, nothing cut."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row to a table: each cell is made harmless and put on one line.

    Args:
        table: the table.
        cells: `cell` for a styled one, None for none ("-"), else what `str` makes a text of.
    """
    table.add_row(*(one if isinstance(one, Text) else cell(one) for one in cells))


def cell(value: object, style: str = "") -> Text:
    """Return a styled cell: harmless, on one line."""
    return Text(one_line("-" if value is None else str(value)), style=style)


def line(text: str, style: str = "") -> Text:
    """Return a text as it stands, harmless; it may have several lines."""
    return Text(visible(text), style=style)


def read_from(settings_file: str) -> str:
    """Return where settings were read, "" meaning no file."""
    return settings_file or f"no {FILE_NAME} here, so none was read"


def described_limits(limits: Mapping[str, float]) -> str:
    """Return limits of calls as ``name=value`` words, as `memorybus provider set` takes them."""
    return " ".join(f"{name}={value:g}" for name, value in limits.items())


def remedy(text: str) -> Text:
    """Return what to do as a line below what is wrong."""
    return line(f"\n    → {text}", "yellow")


def check_line(check: Check) -> Text:
    """Return a check as a line, with its remedy below if it failed or warns."""
    sound = ("!", "yellow") if check.fix else ("✓", "green")
    mark = sound if check.ok else ("✗", "bold red")
    text = Text.assemble(mark, f" {visible(check.name):<16} {visible(check.found)}")
    return text.append_text(remedy(check.fix)) if check.fix else text
