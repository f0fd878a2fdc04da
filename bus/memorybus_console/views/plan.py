"""Shows which part of the history a replay or a rebuild would use."""

from collections.abc import Mapping

from memorybus.text.display import format_duration
from rich.table import Table
from rich.text import Text

from memorybus_console.views.render import grid
from memorybus_console.views.safe import one_line


def facts_table(facts: Mapping[str, str]) -> Table:
    """Return the facts of a plan."""
    table = grid("", " ", texts=(" ",))
    table.show_header = False
    for name, value in facts.items():
        table.add_row(name, Text(one_line(value)))
    return table


def time_text(seconds: float) -> str:
    """Return a time span as people read it."""
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.1f} seconds" if seconds < 10 else format_duration(seconds)
