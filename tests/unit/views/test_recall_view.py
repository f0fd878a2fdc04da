"""What was recalled, as people read it."""

import io

import pytest
from memorybus.recall.model import RecalledItem
from memorybus_console.views.recall import age, memory_details, recalled_table
from rich.console import Console

NOW = 1_800_000_000_000
DAY = 86_400_000
EVENT = "0198f2c45b1e7a3c9d0e1f2a3b4c5d6e"


def printed(renderable: object, width: int = 80) -> str:
    """Return what a terminal of this width would show."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("past", "shown"),
    [
        (0, "now"),
        (3_599_999, "now"),
        (3_600_000, "1 h"),
        (DAY, "1 d"),
        (29 * DAY, "29 d"),
        (61 * DAY, "2 mo"),
        (800 * DAY, "2 y"),
        (-DAY, "now"),
    ],
)
def test_an_age_has_its_largest_unit(past, shown):
    """An age is told in the largest unit that fits; a time in the future is now."""
    assert age(NOW - past, NOW) == shown


def test_an_unknown_time_has_no_age():
    """A memory without a time shows a dash."""
    assert age(None, NOW) == "-"


def test_a_table_fits_eighty_columns_and_cuts_nothing():
    """Provider, age and the whole text stand within the width of a terminal."""
    text = " ".join(f"word{number}" for number in range(60))
    one = RecalledItem("holographic", text, "chat", NOW - 3 * DAY)

    shown = printed(recalled_table([one], NOW))

    assert max(map(len, shown.splitlines())) <= 80
    assert "holographic" in shown
    assert "3 d" in shown
    assert [word for word in shown.split() if word.startswith("word")] == text.split()


def test_an_explanation_names_what_matched_and_the_event():
    """Why a memory was found is told by words, meaning, the score's parts, and its event."""
    one = RecalledItem(
        "holographic", "The inspector comes on Friday.", "chat", NOW, "", speaker="Ana",
        event=EVENT, score=4.25, matched=("inspector", "comes"), meaning=0.5,
        parts={"words": 2.125, "speaker": 2.0},
    )  # fmt: skip

    shown = printed(memory_details(1, one), width=120)

    assert "1. holographic · Ana · 2027-01-15T08:00:00.000Z · chat" in shown
    assert "matched  inspector, comes" in shown
    assert "meaning  0.50 of 1" in shown
    assert "score    4.25 (words 2.12, speaker 2)" in shown
    assert f"event    {EVENT}: memorybus events get {EVENT}" in shown


def test_what_a_provider_does_not_tell_is_left_out():
    """A memory of a provider that explains nothing shows no empty reasons."""
    shown = printed(memory_details(1, RecalledItem("mem0", "Likes tea.", "", None)))

    assert shown.split() == ["1.", "mem0", "Likes", "tea."]


def test_hostile_text_steers_no_terminal():
    """Escape sequences in a memory, its words or its speaker are shown as escapes."""
    bad = "\x1b[31mred"
    one = RecalledItem("p", bad, bad, NOW, bad, speaker=bad, matched=(bad,), parts={bad: 1.0})

    assert "\x1b" not in printed(memory_details(1, one)) + printed(recalled_table([one], NOW))
