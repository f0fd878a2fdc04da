"""What meaning is worth beside words, and how a question is read for it; pure."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.language.words import without_words
from memorybus_providers.ranking import evidence, nearness
from memorybus_providers.ranking.evidence import WeighedFact
from memorybus_providers.ranking.nearness import Near, Spread


@given(
    st.builds(Spread, st.integers(0, 10_000), st.floats(-0.5, 1), st.floats(0, 0.5)),
    st.lists(st.floats(-1, 1), min_size=1),
)
def test_a_nearer_fact_stands_out_further(spread, near):
    """However few facts a scope has, each nearness has a standing, in the order of nearness."""
    found = [spread.near(one) for one in sorted(near)]

    assert all(math.isfinite(one.standing) and 0 <= one.nearness <= 1 for one in found)
    assert [one.standing for one in found] == sorted(one.standing for one in found)


def test_standing_is_measured_by_what_is_usual_in_the_scope():
    """Where all facts are rather near to a question, being rather near is worth nothing."""
    strange, alike = Spread(1_000, 0.1, 0.1), Spread(1_000, 0.5, 0.1)

    assert strange.near(0.5).standing == pytest.approx(4, abs=0.1)
    assert alike.near(0.5).standing == pytest.approx(0, abs=0.1)


def test_meaning_is_worth_a_share_of_what_is_asked():
    """A fact gains by how far it stands out, within bounds."""
    middle = (nearness.FULL_STANDING + nearness.LEAST_STANDING) / 2
    standings = {1: 9.0, 2: nearness.FULL_STANDING, 3: middle, 4: nearness.LEAST_STANDING, 5: -3.0}
    near = {fact: Near(0.5, standing) for fact, standing in standings.items()}

    most = nearness.MAX_GAIN * 5
    assert nearness.meaning_amounts(near, 5.0) == {1: most, 2: most, 3: pytest.approx(most / 2)}


def test_meaning_is_a_facts_own():
    """What speaks for a fact by its meaning says nothing of what stands around it."""
    places = [WeighedFact(1, (1, 0)), WeighedFact(2, (1, 1))]

    assert evidence.weights(places, {"car": 1.0}, {1: 3.0}) == {1: evidence.Weight(0, 3.0, 0, 3.0)}


@pytest.mark.parametrize(
    ("text", "names", "left"),
    [
        ("What did Ann's dog eat, Bob?", {"ann", "bob"}, "What did dog eat, ?"),
        ("Wo wohnt José?", {"jose"}, "Wo wohnt ?"),
        ("Ann\u2019s car", {"ann"}, "car"),
        ("Ann, Bob?", {"ann", "bob"}, "Ann, Bob?"),
        ("An  annual car", {"ann"}, "An annual car"),
        ("as  it is", set(), "as  it is"),
    ],
)
def test_words_are_left_out_of_a_text(text, names, left):
    """They go with what marks the possessor; a text of nothing else stays whole."""
    assert without_words(text, names) == left
