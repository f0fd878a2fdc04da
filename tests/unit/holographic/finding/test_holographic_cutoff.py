"""Where an answer ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.ranking.cutoff import (
    ENOUGH_SHARE,
    LEAST_SHARE,
    USUAL_BUDGET,
    cut_off,
)
from memorybus_providers.ranking.ranking import (
    LEAST_FIT,
    LINE_CHARS,
    USUAL_LINE_CHARS,
    Corpus,
    Fact,
    Scored,
)
from unit.holographic.holographic_feeding import add, ask, feed, texts, turn

USUAL = USUAL_LINE_CHARS - LINE_CHARS
"""Characters of a text whose line is as long as usual."""

ASIDE = "The ferry number {} was late again, and the harbour stayed closed"


def scored(marks: list[tuple[float, int]], fit: float = 1.0) -> list[Scored]:
    """Return facts of these scores and lengths, best first."""
    return [
        Scored(Fact(n, None, 0.5, "", "", "user", "", 0, "x" * length, "", ""), score, fit=fit)
        for n, (score, length) in enumerate(sorted(marks, reverse=True))
    ]


MARKS = st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 300)), max_size=30)


@given(MARKS, st.integers(1, 2_000), st.integers(1, 300))
def test_of_equally_long_facts_the_best_are_given(marks, budget, length):
    """The best fact is given, and after one that is left out none of the same length comes."""
    found = scored([(score, length) for score, _ in marks])

    given_facts = list(cut_off(found, budget))

    assert given_facts == found[: len(given_facts)]
    assert bool(given_facts) == bool(found)


@given(MARKS, st.integers(1, 2_000))
def test_what_is_half_as_good_as_the_best_is_given(marks, budget):
    """A fact is worth its room at any length and place if it is at least half as good."""
    found = scored(marks)
    good = [one for one in found if one.score >= ENOUGH_SHARE * found[0].score]

    assert [one for one in cut_off(found, budget) if one in good] == good


def test_the_longer_the_better_a_fact_must_be():
    """Of two facts of one score the long one is left out, and the short one after it is not."""
    found = [*scored([(1.0, 500)]), *scored([(0.3, 340)]), *scored([(0.3, 80)])]

    assert list(cut_off(found, 1_000)) == [found[0], found[2]]


@given(MARKS, st.integers(1, 3 * USUAL_BUDGET), st.integers(1, 3 * USUAL_BUDGET))
def test_more_room_lets_more_in(marks, budget, more):
    """A larger budget never gives fewer facts."""
    found = scored(marks)

    assert len(list(cut_off(found, budget))) <= len(list(cut_off(found, budget + more)))


def test_the_fuller_the_better_a_fact_must_be():
    """A weak fact is let into an empty block, and kept out of a full one."""
    weak = LEAST_SHARE * 0.9
    few = scored([(1.0, USUAL), (weak, USUAL)])
    many = scored([*[(1.0, USUAL)] * 9, (weak, USUAL)])

    assert len(list(cut_off(few, 1_000))) == 2
    assert len(list(cut_off(many, 1_000))) == 9


@pytest.mark.parametrize(("times", "share"), [(0.5, 1.0), (1, 1.0), (4, 0.25)])
def test_who_gives_more_room_than_usual_gets_weaker_facts(times, share):
    """The last fact of a full block must be as good as ever up to the usual budget, then less."""
    budget = int(USUAL_BUDGET * times)
    full = [(1.0, budget)]
    let_in = scored([*full, (LEAST_SHARE * share * 1.01, USUAL)])
    left_out = scored([*full, (LEAST_SHARE * share * 0.99, USUAL)])

    assert len(list(cut_off(let_in, budget))) == 2
    assert len(list(cut_off(left_out, budget))) == 1


@pytest.mark.parametrize(("fit", "facts"), [(LEAST_FIT * 0.9, 0), (LEAST_FIT, 1)])
def test_where_nothing_fits_nothing_is_given(fit, facts):
    """An answer begins with a fact that says enough of what is asked for, or there is none."""
    assert len(list(cut_off(scored([(3.0, 50)], fit), 2_000))) == facts


def test_what_was_never_said_has_no_answer(provider):
    """A question of which facts share a passing word gets none of them; one of theirs gets some."""
    feed(provider, [turn(ASIDE.format(n)) for n in range(150)])

    assert (
        ask(provider, "Which grease does the pump of Agnes's tractor need when it is late?") == []
    )
    assert texts(provider, "Was the harbour closed?")


def test_a_long_prompt_is_answered_by_a_part(provider):
    """Of a prompt with many words, a fact need not say more than the rarest few."""
    feed(provider, [turn(ASIDE.format(n)) for n in range(150)])
    feed(provider, [turn("Agnes greases her tractor pump with lithium")], first=500, session="b")
    prompt = (
        "Morning! Yesterday was long, my sister visited, we cooked, and then somebody rang about "
        "invoices, but never mind that. What did Agnes say about grease for the tractor pump?"
    )

    assert texts(provider, prompt)[0] == "Agnes greases her tractor pump with lithium"


def test_few_facts_say_little_of_what_was_never_said(provider):
    """In a small store a fact is given for a single word: that the others lack means little."""
    feed(provider, [add("Takes swimming every Tuesday"), add("Likes tea")])

    assert texts(provider, "Where do the evening swimming lessons begin?") == [
        "Takes swimming every Tuesday"
    ]


def test_a_missing_word_counts_more_among_many_facts():
    """What no fact holds is a small part of what is asked for in a small store only."""
    few, many = Corpus(5, {"tea": 1, "zebra": 0}), Corpus(5_000, {"tea": 1_000, "zebra": 0})

    assert few.rarity_of_question < 1.5 * few.rarity("tea")
    assert many.rarity_of_question > many.rarity("tea") + 0.9 * many.rarity("zebra")


def test_a_stranger_has_no_answer(provider):
    """The words around a name say nothing of whom it names."""
    feed(provider, [turn(f"Mara told me about day {day}", f"Fine, day {day}") for day in range(60)])

    assert texts(provider, "what did Mara tell me about day 7")
    assert texts(provider, "what did Ruben tell me") == []
