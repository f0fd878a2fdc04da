"""Which memories repeat others, and which proposals hold: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus.registry.curation import Repetition
from memorybus_workers.curating.repetitions import (
    accepted,
    apply_changes,
    find_contained,
    find_repetitions,
    normalised,
)
from memorybus_workers.curating.transitions import CuratedMemory

ANN, BEN = Scope(user="ann"), Scope(user="ben")


def memory(name: str, text: str = "", scope: Scope = ANN, **more: object) -> CuratedMemory:
    """Return a memory."""
    return CuratedMemory(name, scope, text, **more)


def by_name(*memories: CuratedMemory) -> dict[tuple[Scope, str], CuratedMemory]:
    """Return memories by owner and name."""
    return {(one.scope, one.name): one for one in memories}


def proposal(source: str, target: str, user: str = "ann") -> Repetition:
    """Return a proposal that a memory goes and another one stands for it."""
    return Repetition(memory=source, successor=target, agent="default", user=user)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Ana likes tea.", "ana  likes tea", True),
        ("Tea: at four!", "tea at four", True),
        ("A dose of 3.5 mg", "A dose of 35 mg", False),
        ("writes C++", "writes C", False),
        ("Ana likes tea?", "Ana likes tea.", False),
        ("likes 🍎", "likes 🍐", False),
        ("5 degrees", "-5 degrees", False),
    ],
)
def test_texts_are_alike_only_if_they_say_the_same(one, other, alike):
    """Case, spaces and pauses make no difference; numbers, signs and questions do."""
    assert (normalised(one) == normalised(other)) is alike


def test_of_the_same_words_the_pinned_then_the_last_used_then_the_oldest_stays():
    """One of several stands for the others; a pinned one is never archived."""
    old = memory("a", "tea at four", created=1)
    new = memory("b", "Tea at four", created=2)
    used = memory("c", "tea at four.", created=3, used=9)
    pinned = memory("d", "tea at FOUR", created=4, state="pinned")
    elsewhere = memory("e", "tea at four", BEN)

    def goes(*some: CuratedMemory) -> dict[str, str]:
        return {one.memory: one.successor for one in find_repetitions(some)}

    assert goes(old, new) == {"b": "a"}
    assert goes(old, new, used) == {"a": "c", "b": "c"}
    assert goes(old, new, used, pinned) == dict.fromkeys("abc", "d")
    assert goes(old, elsewhere) == {}


def test_what_a_longer_memory_contains_is_found():
    """Whole words in a row, at least three of them, of one owner."""
    short = memory("a", "allergic to nuts")
    longer = memory("b", "Ana is not allergic to nuts.")
    cut = memory("c", "allergic to nutshells of any kind")
    tiny = memory("d", "to nuts")

    found = find_contained([short, longer, cut, tiny])
    assert [(one.memory, one.successor) for one in found] == [("a", "b")]
    assert find_contained([short, memory("b", longer.text, BEN)]) == []


@pytest.mark.parametrize(
    ("wrong", "known"),
    [
        (proposal("x", "b"), by_name(memory("a"), memory("b"))),
        (proposal("a", "x"), by_name(memory("a"), memory("b"))),
        (proposal("a", "a"), by_name(memory("a"))),
        (proposal("a", "b", "ben"), by_name(memory("a"), memory("b"))),
        (proposal("a", "b"), by_name(memory("a", state="pinned"), memory("b"))),
        (proposal("a", "b"), by_name(memory("a"), memory("b", state="archived"))),
        (proposal("a", "b"), by_name(memory("a", state="archived"), memory("b"))),
    ],
)
def test_a_proposal_that_does_not_hold_changes_nothing(wrong, known):
    """Sources exist, belong to the owner, are in prompts, and what is pinned stays."""
    assert accepted([wrong], known) == []


names = st.sampled_from("abcd")
states = st.sampled_from(("active", "stale", "archived", "pinned"))
proposals = st.lists(st.builds(proposal, names, names))


@given(st.dictionaries(names, states), proposals)
def test_whatever_is_proposed_something_in_prompts_stands_for_what_goes(some, wanted):
    """No chain or circle of proposals makes a memory vanish without one that stands for it."""
    known = by_name(*(memory(name, state=state) for name, state in some.items()))

    after = apply_changes(known, accepted(wanted, known), now=1)

    for place, one in after.items():
        if one.state != known[place].state:
            assert known[place].state not in {"pinned", "archived"}
            assert after[one.scope, one.successor].state != "archived"
