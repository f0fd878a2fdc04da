"""Hostile text never steers the terminal."""

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_console.views.render import Grid, json_text, one_line, visible
from rich.console import Console
from rich.text import Text

any_text = st.text(st.characters(codec=None), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äöü 漢字 🐋", "plain äöü 漢字 🐋"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07 nul\x00 del\x7f csi\x9b", "bell\\x07 nul\\x00 del\\x7f csi\\x9b"),
        ("over\rwrite", "over\\x0dwrite"),
        ("\u202eevil", "\\u202eevil"),
        ("half \ud83d", "half \\ud83d"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_steering_characters_become_visible(text, expected):
    """Control characters, direction overrides and surrogates are shown, the rest stays."""
    assert visible(text) == expected


@given(any_text)
def test_visible_text_can_always_be_printed(text):
    """Whatever comes in, what goes out encodes and holds no control but newline and tab."""
    shown = visible(text)

    shown.encode()
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@given(any_text, st.integers(1, 40))
def test_one_line_is_one_line_of_at_most_its_width(text, width):
    """A summary never breaks the line and never outgrows its place."""
    line = one_line(text, width)

    assert len(line) <= width
    assert "\n" not in line
    assert "\t" not in line


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | any_text,
        lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
        max_leaves=8,
    ),
    st.sampled_from([None, 2]),
)
def test_json_stays_the_same_value(value, indent):
    """Escaping for the terminal does not change what the JSON says."""
    text = json_text(value, indent=indent)

    text.encode()
    assert json.loads(text) == value
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]


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
