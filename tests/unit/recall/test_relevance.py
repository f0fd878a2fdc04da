"""Which warm lines have to do with a prompt they were not asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.recall.lines import relevant_lines

LINES = (
    "- [2026-03-01, Ana] We planted tomatoes behind the shed",
    "- [2026-03-02, Ana] Oskar the cat hates thunder",
    "- The invoice of the roofer is 4711",
    "- 我把钥匙放在花盆下面",
    "- Ich habe den Rasenmäher verliehen",
    "- Мы купили лодку весной",
)

CASES = [
    ("What did Ana plant behind the shed?", [0]),
    ("Is the cat afraid of thunder?", [1]),
    ("which number had the invoice, 4711?", [2]),
    ("钥匙在哪里?", [3]),
    ("Wo steht der Rasenmäher?", [4]),
    ("Где наша лодка?", [5]),
    ("Tell me what would you make with that there", []),
    ("How high is the mountain?", []),
    ("What happened in 2026, on 03-01?", []),
]


@pytest.mark.parametrize(("prompt", "expected"), CASES)
def test_only_lines_that_share_a_telling_word_are_relevant(prompt, expected):
    """A line is shown for another prompt only if a word of it, in any script, is in that prompt."""
    assert relevant_lines(LINES, prompt) == tuple(LINES[i] for i in expected)


def test_a_word_of_most_lines_tells_nothing_about_one():
    """What nearly every line says does not make one of them an answer."""
    lines = [f"- The garden of {name}" for name in ("Ana", "Benno", "Clara", "Dimitri")]
    assert relevant_lines(lines, "Whose garden is it, that of Clara?") == (lines[2],)


@given(st.lists(st.text(), max_size=6), st.text())
def test_the_relevant_lines_are_some_of_the_lines(lines, prompt):
    """Any text is a line or a prompt; the order is kept and nothing is made up."""
    rest = iter(lines)
    assert all(line in rest for line in relevant_lines(lines, prompt))
