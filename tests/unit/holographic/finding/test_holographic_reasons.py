"""Why a fact was found."""

import math

from memorybus_providers.base import RecallContext, Recollection
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import AT, MINE, add, context, feed, turn


def explained(provider: HolographicProvider, question: str) -> list[Recollection]:
    """Return what is recalled by somebody who wants to know why."""
    return list(provider.prefetch(question, RecallContext(MINE, explain=True)))


def test_a_recollection_names_its_event(provider):
    """What was said, and what was kept, is recalled with the id of the event that brought it."""
    feed(provider, [turn("We sailed to the cape"), add("Sails a blue boat")])

    found = {one.text: one.event for one in explained(provider, "sail")}

    assert found == {
        "We sailed to the cape": context(1).event_id,
        "Sails a blue boat": context(2).event_id,
    }


def test_matched_words_are_told_as_the_memory_spells_them(provider):
    """A word is told as it stands in the memory; what was found by what is around it has none."""
    feed(provider, [turn("We BOUGHT two canoes, and canoes leak", "A fine thing")])

    found = {one.text: one.why for one in explained(provider, "Did they buy a canoe?")}

    assert [why.words for why in found.values() if why] == [("BOUGHT", "canoes"), ()]


def test_the_parts_make_the_score(provider):
    """Amounts add up and factors multiply to the score: a person can follow the sum."""
    feed(provider, [turn("I sailed to the cape", "Did you sail far?", user_name="Ann")], at=AT)
    feed(provider, [add("Ann sails a blue boat")], first=2)

    for one in explained(provider, "Where did Ann sail in November 2023?"):
        assert one.why is not None
        amounts = {"words", "conversation"} & one.why.parts.keys()
        factors = [amount for name, amount in one.why.parts.items() if name not in amounts]
        total = sum(one.why.parts[name] for name in amounts)
        assert math.isclose(total * math.prod(factors), one.score)


def test_nobody_is_told_why_who_did_not_ask(provider):
    """The reasons cost nothing where they are not wanted."""
    feed(provider, [turn("We sailed to the cape")])

    assert [one.why for one in provider.prefetch("sail", RecallContext(MINE))] == [None]
