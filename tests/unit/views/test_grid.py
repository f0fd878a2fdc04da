"""Tables at any width."""

import io

import pytest
from memorybus_console.views.render import Grid
from rich.console import Console
from rich.text import Text

ID = "01a20b7a5e50767f863f90f1a225738e"
WHY = "a sentence of some length that says why this was so"


def shown(table: Grid, width: int) -> list[str]:
    """Return the lines of a table, without what pads them."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def table() -> Grid:
    """Return a table with an id, a number and running text."""
    made = Grid("id", "count", "why", texts=("why",))
    made.add_row(Text(ID), Text("7"), Text(WHY))
    return made


def test_there_is_room():
    """What fits is one line a row."""
    assert shown(table(), 120) == [f"{'id':<32}  count  why", f"{ID}  7      {WHY}"]


@pytest.mark.parametrize("width", [61, 70, 80])
def test_only_running_text_is_folded(width):
    """An id stays whole while the text beside it takes the room that is left."""
    lines = shown(table(), width)
    assert ID in lines[1]
    assert len(lines) > 2
    assert max(map(len, lines)) <= width


def test_what_does_not_fit_is_shown_below_each_other():
    """With less room each row is a block of lines; the id is whole, an empty cell left out."""
    made = table()
    made.add_row(Text("x"), Text("8"), Text(""))
    lines = shown(made, 45)
    assert lines[:2] == [f"id     {ID}", "count  7"]
    assert lines[2].startswith("why    a sentence")
    assert [line for line in lines[4:] if line] == ["id     x", "count  8"]


def test_no_rows_at_any_width():
    """An empty table is its heads, or nothing."""
    assert shown(Grid("a", "b"), 80) == ["a  b"]
    assert shown(Grid("a" * 50, "b" * 50), 80) == []


def test_wide_characters_count_twice():
    """What fits is judged by the room that characters take, not by their number."""
    made = Grid("name", "why")
    made.add_row(Text("鍵" * 20), Text("8"))
    assert len(shown(made, 44)) > 2
    assert len(shown(made, 45)) == 2
