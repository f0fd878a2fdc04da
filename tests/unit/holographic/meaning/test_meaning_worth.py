"""What meaning is worth beside words, and how a question is read for it; pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.language.words import without_words
from memorybus_providers.ranking import evidence, nearness
from memorybus_providers.ranking.evidence import WeighedFact


@given(st.lists(st.floats(0, 1)))
def test_meaning_is_believed_as_far_as_it_finds_what_shares_no_word(near: list[float]) -> None:
    """It counts for nothing below one bound, in full above the other, and the nearest decides."""
    believed = nearness.belief(near)

    assert 0 <= believed <= 1
    assert believed == nearness.belief([max(near, default=0.0)])
    assert (believed == 0) == (max(near, default=0.0) <= nearness.DOUBTED_NEARNESS)


def test_meaning_is_worth_a_share_of_what_is_asked() -> None:
    """A fact gains by how near it is; what is not near, or not believed, gains nothing."""
    near = {1: 1.0, 2: 0.5, 3: 0.0}

    whole = nearness.meaning_amounts(near, [2.0, 3.0], 1.0)
    assert whole == {
        1: pytest.approx(nearness.MAX_GAIN * 5),
        2: pytest.approx(nearness.MAX_GAIN * 2.5),
    }
    assert nearness.meaning_amounts(near, [2.0, 3.0], 0.0) == {}


def test_meaning_is_a_facts_own() -> None:
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
def test_words_are_left_out_of_a_text(text: str, names: set[str], left: str) -> None:
    """They go with what marks the possessor; a text of nothing else stays whole."""
    assert without_words(text, names) == left
