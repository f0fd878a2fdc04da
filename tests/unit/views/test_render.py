"""Hostile text never steers the terminal."""

import io
import json
import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Envelope, Scope, SessionRef, SessionStarted, TurnCompleted
from memorybus.lineage.graph import fold
from memorybus.text.display import one_line, visible
from memorybus_console.views import tree
from memorybus_console.views.render import Grid, json_text
from memorybus_console.views.status import FittedToScreen
from rich.console import Console
from rich.live import Live
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


ANYBODY = Scope()


def told(event, at, session, root="a", parent="", scope=ANYBODY):
    """Return an envelope of a session."""
    return Envelope(
        id=f"{at:032x}",
        key=f"session:{root}",
        scope=scope,
        session=SessionRef(session, root, parent),
        at=at,
        event=event,
    )


LINEAGE = fold(
    [
        told(SessionStarted(title="Lens\x1b[2J"), 1, "a"),
        told(TurnCompleted(user="x"), 2, "a"),
        told(SessionStarted(parent="a", reason="branch"), 3, "b", parent="a"),
        told(SessionStarted(title="Other"), 4, "z", root="z"),
    ]
)


def test_a_branch_stands_below_its_parent():
    """Every session once, each before those that came from it."""
    assert [(depth, node.id) for depth, node in tree.rows(LINEAGE)] == [
        (0, "a"),
        (1, "b"),
        (0, "z"),
    ]


def test_one_session_shows_its_whole_tree():
    """Whichever session of a tree is named, the tree is shown, and no other."""
    assert [node.id for _, node in tree.rows(LINEAGE, "b")] == ["a", "b"]
    assert tree.rows(LINEAGE, "nobody") == []


def test_everybodys_session_of_an_id_is_shown():
    """An id that several people's sessions have shows the trees of all, and says whose each is."""
    scopes = (Scope(user="ann"), Scope(user="ben", workspace="boat\x1b"))
    events = [told(SessionStarted(), at, "a", scope=scope) for at, scope in enumerate(scopes, 1)]
    found = list(map(tree.session_row, tree.rows(fold(events), "a")))

    assert [row.user for row in found] == ["ann", "ben"]
    assert [tree.tree_line(row).plain.split("  ")[-1] for row in found] == [
        "ann ↔ default",
        "ben ↔ default in boat\\x1b",
    ]


def test_a_line_tells_what_is_known_and_steers_nothing():
    """Indent, id, reason, title, turns; hostile titles are made harmless."""
    first, second, _ = (tree.tree_line(tree.session_row(row)).plain for row in tree.rows(LINEAGE))

    assert first == "a  start  Lens\\x1b[2J  1 turn, 1970-01-01 00:00  default ↔ default"
    assert second.startswith("└─ b  branch  0 turns")
