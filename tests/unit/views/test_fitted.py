"""What is shown in one place of a terminal again and again."""

from io import StringIO

import pytest
from memorybus_console.views.status import FittedToScreen
from rich.console import Console
from rich.live import Live
from rich.text import Text


def lines_of(count: int, rows: int) -> list[str]:
    """Return what a terminal of so many rows shows of so many lines."""
    console = Console(file=StringIO(), width=80, height=rows, force_terminal=True)
    text = Text("\n".join(f"line {number}" for number in range(1, count + 1)))
    screen = console.render_lines(FittedToScreen(text), console.options.update(height=rows))
    shown = ["".join(segment.text for segment in line).rstrip() for line in screen]
    return [line for line in shown if line]


@pytest.mark.parametrize("count", [0, 1, 23, 24])
def test_what_fits_is_shown_whole(count):
    """As many lines as there are rows, and none is said to be hidden."""
    assert lines_of(count, 24) == [f"line {number}" for number in range(1, count + 1)]


@pytest.mark.parametrize(("count", "hidden"), [(25, "2 more lines"), (100, "77 more lines")])
def test_what_does_not_fit_is_counted(count, hidden):
    """The last row says how many lines are hidden, its own place included, and what shows them."""
    shown = lines_of(count, 24)

    assert len(shown) == 24
    assert shown[:23] == [f"line {number}" for number in range(1, 24)]
    assert hidden in shown[23]
    assert "memorybus status" in shown[23]


def test_a_watch_leaves_nothing_behind():
    """Each look stands in the place of the one before, on a screen that goes with the watch."""
    file = StringIO()
    console = Console(file=file, width=80, height=5, force_terminal=True)

    with Live(console=console, auto_refresh=False, screen=True) as live:
        for look in ("one\n" * 40, "two\n"):
            live.update(FittedToScreen(Text(look)), refresh=True)

    said = file.getvalue()
    assert said.count("\n") <= 3 * 5
    assert said.startswith("\x1b[?1049h")
    assert said.endswith("\x1b[?1049l")
