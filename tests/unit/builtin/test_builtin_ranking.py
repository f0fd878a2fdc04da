"""Which entries answer a query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.builtin.entries import matched_words, rank

ENTRIES = [
    "The user likes green tea in the morning.",
    "The user lives in Oslo with two cats.",
    "The user works on trains; likes cats.",
]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("Where does the user live? In Oslo?", [1, 2, 0]),
        ("green TEA", [0]),
        ("Which train?", [2]),
        ("a cat", [2, 1]),
        ("What about quantum chemistry?", []),
        ("Who worked on a train?", [2]),
        ("wo wohnt der mit den Cats?", [2, 1]),
        ("what is it", [2, 1, 0]),
        ("", [2, 1, 0]),
    ],
)
def test_rank(query, order):
    """Shared terms rank, rare ones more, newer first among equals; stop words ask for all."""
    assert [i for _, i in rank(ENTRIES, query)] == order


def test_matched_words_are_told_as_the_entry_spells_them():
    """What an entry shares with a query is told in the entry's own words, each once."""
    assert matched_words("Two Cats, and cats of Oslo", "Has the user a cat in Oslo?") == (
        "Cats",
        "cats",
        "Oslo",
    )


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=200))
def test_rank_takes_any_text(entries, query):
    """Any query and any entries give each entry at most once, best first."""
    ranked = rank(entries, query)

    assert len({i for _, i in ranked}) == len(ranked)
    assert [score for score, _ in ranked] == sorted((s for s, _ in ranked), reverse=True)
