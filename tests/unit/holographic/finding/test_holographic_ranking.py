"""What is ranked, what comes first, why, and how much of it is given."""

import math
from collections import Counter
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memorybus_providers.base import RecallContext, Recollection
from memorybus_providers.finding import search
from memorybus_providers.finding.search import fit_budget
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.ranking.cutoff import (
    ENOUGH_SHARE,
    LEAST_SHARE,
    USUAL_BUDGET,
    cut_off,
)
from memorybus_providers.ranking.excerpt import LEAST_CHARS
from memorybus_providers.ranking.facts import MAX_PASSAGE_CHARS
from memorybus_providers.ranking.ranking import (
    LEAST_FIT,
    LINE_CHARS,
    USUAL_LINE_CHARS,
    Corpus,
    Fact,
    Scored,
)
from memorybus_providers.ranking.shares import ASKED_SHARE, USUAL_SHARE, share_of_answers
from unit.holographic.holographic_feeding import (
    AT,
    DAY,
    MINE,
    add,
    ask,
    context,
    feed,
    shown,
    stored,
    texts,
    turn,
)

MAY_2023 = 1_683_500_000_000


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Where did we sail in May 2023?", "We sailed to the north cape"),
        ("Where did we sail in May?", "We sailed to the north cape"),
        ("Where did we sail in 2023?", "We sailed to the north cape"),
        ("Where did we sail in May 2021?", "We sailed to the south cape"),
    ],
)
def test_a_month_named_is_preferred(question, best, provider):
    """A question that names a month or a year prefers what was said in it."""
    feed(provider, [turn("We sailed to the north cape")], session="a", at=MAY_2023)
    later = MAY_2023 + 700 * 86_400_000
    feed(provider, [turn("We sailed to the south cape")], first=2, session="b", at=later)

    assert texts(provider, question)[0] == best


@pytest.mark.parametrize("at", [-(2**63), -1, 0, 2**63 - 1])
def test_an_impossible_time_is_only_a_time(at, provider):
    """A time no calendar knows neither raises nor hides the fact."""
    feed(provider, [turn("We sailed to the cape")], at=at)

    assert [found.at for found in ask(provider, "Where did we sail in May 2023?")] == [at]


def test_trust_ranks_mildly(provider):
    """Of two equal facts the trusted one is first; a distrusted one is still recalled."""
    feed(provider, [add("The code is 1111"), add("The code is 2222")])
    (fact,) = [one["id"] for one in shown(provider, "1111") if "1111" in one["text"]]

    for n, helpful in enumerate([True, True]):
        provider.handle_tool_call(
            "memory_feedback", {"fact_id": fact, "helpful": helpful}, context(60 + n)
        )
    assert texts(provider, "code") == ["The code is 1111", "The code is 2222"]
    for n in range(20):
        provider.handle_tool_call(
            "memory_feedback", {"fact_id": fact, "helpful": False}, context(80 + n)
        )
    assert texts(provider, "code") == ["The code is 2222", "The code is 1111"]


def test_scores_fall_and_texts_are_given_once(provider):
    """Recollections come best first, and the same words only once."""
    feed(provider, [turn("The ferry is late", f"Noted, ferry {n}") for n in range(5)])

    found = ask(provider, "ferry")

    assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)
    assert len({f.text for f in found}) == len(found) == 6


def test_a_prefetch_changes_nothing(provider):
    """Recall writes nothing, not even counts."""
    feed(provider, [turn("The ferry is late")])
    before = stored(provider)

    ask(provider, "ferry")

    assert stored(provider) == before


def scored(texts: list[str]) -> list[Scored]:
    """Return facts of these texts, best first."""
    return [
        Scored(Fact(n, None, 0.5, "", "", "user", "", 0, text, "", ""), -n)
        for n, text in enumerate(texts)
    ]


@given(st.lists(st.text("abc ", min_size=1, max_size=300), max_size=20), st.integers(1, 1_000))
def test_a_budget_is_filled(texts, budget):
    """Distinct texts are given in order until none fits; then the beginning of one more."""
    given_texts = [(found.fact.content, text) for found, text in fit_budget(scored(texts), budget)]

    assert len({whole for whole, _ in given_texts}) == len(given_texts)
    assert sum(len(text) for _, text in given_texts) <= budget
    assert all(text in {whole, f"{text[:-1]}…"} for whole, text in given_texts)
    left = budget - sum(len(text) for _, text in given_texts)
    left_out = set(texts) - {whole for whole, _ in given_texts}
    assert not left_out or left < LEAST_CHARS


LONG = " ".join(f"Stop {n} of the tour is the lighthouse of island {n}." for n in range(60))


@pytest.mark.parametrize(("asked", "begins"), [("the first stop", "Stop 0"), ("island 37", "…")])
def test_a_long_memory_is_cut_to_what_answers(asked, begins, provider):
    """A kept memory longer than the budget is not dropped: the passage that answers is shown."""
    feed(provider, [add(LONG), add("The tour takes five days")])

    found, *_ = [one for one in ask(provider, asked) if one.truncated]

    assert found.text.startswith(begins)
    assert found.text.endswith("…")
    assert len(found.text) <= 2_000
    assert "37" in found.text or begins == "Stop 0"


def test_a_system_prompt_tells_how_to_see_all_of_a_long_memory(provider):
    """It is cut, and names the command that shows its event."""
    feed(provider, [add(LONG)])

    block = provider.system_prompt_block(MINE)

    assert block.endswith(f"… (all of it: memorybus events get {context(1).event_id})")
    assert len(block) < 1_200


def test_a_prefetch_fills_its_budget(provider):
    """A larger budget gives more, and never more text than asked for."""
    feed(provider, [turn(f"Ferry number {n} {'x' * 80}") for n in range(60)])

    for budget in (500, 1_000, 4_000):
        spent = sum(map(len, texts(provider, "ferry", budget=budget)))
        assert budget - 100 < spent <= budget


USUAL = USUAL_LINE_CHARS - LINE_CHARS
"""Characters of a text whose line is as long as usual."""


def marked(marks: list[tuple[float, int]], fit: float = 1.0) -> list[Scored]:
    """Return facts of these scores and lengths, best first."""
    return [
        Scored(Fact(n, None, 0.5, "", "", "user", "", 0, "x" * length, "", ""), score, fit=fit)
        for n, (score, length) in enumerate(sorted(marks, reverse=True))
    ]


MARKS = st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 300)), max_size=30)


@given(MARKS, st.integers(1, 2_000), st.integers(1, 300))
def test_of_equally_long_facts_the_best_are_given(marks, budget, length):
    """The best fact is given, and after one that is left out none of the same length comes."""
    found = marked([(score, length) for score, _ in marks])

    given_facts = list(cut_off(found, budget))

    assert given_facts == found[: len(given_facts)]
    assert bool(given_facts) == bool(found)


@given(MARKS, st.integers(1, 2_000))
def test_what_is_half_as_good_as_the_best_is_given(marks, budget):
    """A fact is worth its room at any length and place if it is at least half as good."""
    found = marked(marks)
    good = [one for one in found if one.score >= ENOUGH_SHARE * found[0].score]

    assert [one for one in cut_off(found, budget) if one in good] == good


def test_the_longer_the_better_a_fact_must_be():
    """Of two facts of one score the long one is left out, and the short one after it is not."""
    found = [*marked([(1.0, 500)]), *marked([(0.3, 340)]), *marked([(0.3, 80)])]

    assert list(cut_off(found, 1_000)) == [found[0], found[2]]


@given(MARKS, st.integers(1, 3 * USUAL_BUDGET), st.integers(1, 3 * USUAL_BUDGET))
def test_more_room_lets_more_in(marks, budget, more):
    """A larger budget never gives fewer facts."""
    found = marked(marks)

    assert len(list(cut_off(found, budget))) <= len(list(cut_off(found, budget + more)))


def test_the_fuller_the_better_a_fact_must_be():
    """A weak fact is let into an empty block, and kept out of a full one."""
    weak = LEAST_SHARE * 0.9
    few = marked([(1.0, USUAL), (weak, USUAL)])
    many = marked([*[(1.0, USUAL)] * 9, (weak, USUAL)])

    assert len(list(cut_off(few, 1_000))) == 2
    assert len(list(cut_off(many, 1_000))) == 9


@pytest.mark.parametrize(("times", "share"), [(0.5, 1.0), (1, 1.0), (4, 0.25)])
def test_who_gives_more_room_than_usual_gets_weaker_facts(times, share):
    """The last fact of a full block must be as good as ever up to the usual budget, then less."""
    budget = int(USUAL_BUDGET * times)
    full = [(1.0, budget)]
    let_in = marked([*full, (LEAST_SHARE * share * 1.01, USUAL)])
    left_out = marked([*full, (LEAST_SHARE * share * 0.99, USUAL)])

    assert len(list(cut_off(let_in, budget))) == 2
    assert len(list(cut_off(left_out, budget))) == 1


@pytest.mark.parametrize(("fit", "facts"), [(LEAST_FIT * 0.9, 0), (LEAST_FIT, 1)])
def test_where_nothing_fits_nothing_is_given(fit, facts):
    """An answer begins with a fact that says enough of what is asked for, or there is none."""
    assert len(list(cut_off(marked([(3.0, 50)], fit), 2_000))) == facts


def test_a_missing_word_counts_more_among_many_facts():
    """What no fact holds is a small part of what is asked for in a small store only."""
    few, many = Corpus(5, {"tea": 1, "zebra": 0}), Corpus(5_000, {"tea": 1_000, "zebra": 0})

    assert few.rarity_of_question < 1.5 * few.rarity("tea")
    assert many.rarity_of_question > many.rarity("tea") + 0.9 * many.rarity("zebra")


MAX_CHOSEN = 3
"""Rows that are chosen here, so that few rows are enough to leave some out."""

ROWS = st.lists(st.integers(1, 12), unique=True)
LONG_ANSWER = " ".join(f"Tip {n}: this oven heats evenly if its fan is clean." for n in range(60))
"""An answer of more than `MAX_ANSWERS` pieces in eight turns."""

FOUND = st.lists(st.tuples(st.integers(1, 40), ROWS), max_size=6)
"""Amounts and rows; whole numbers, so that sums have no rounding."""


@given(FOUND)
@example([(10, [1, 2, 3]), (6, [4]), (6, [4])])  # the last comes late, and comes first
def test_rows_that_cannot_catch_up_are_left_out_and_no_others(found):
    """Leaving out rows that come too late changes nothing: the largest sums are chosen."""
    sums: Counter[int] = Counter()
    for amount, rows in found:
        sums.update(dict.fromkeys(rows, amount))
    largest = sorted(sums, key=lambda row: (-sums[row], -row))[:MAX_CHOSEN]
    given_in_order = [(float(amount), rows) for amount, rows in found]
    total = float(sum(amount for amount, _ in found))

    assert search.most_worth(given_in_order, total, MAX_CHOSEN) == largest


def test_rows_that_come_late_and_are_worth_as_much_are_chosen():
    """Rounding leaves no row out: of equals the newest are chosen, whichever term found them."""
    amount = Corpus(828, {"word": 100}).rarity("word")
    found = [(amount, [row]) for row in range(1, 10)]
    late = [(amount, [1, 2, 3]), *found[3:5]]
    both = [(amount, [1, 2, 3]), (amount, [1, 2, 3]), (amount, [9]), (amount, [9])]

    assert search.most_worth(found[:3], 3 * amount, MAX_CHOSEN) == [3, 2, 1]
    assert search.most_worth(late, 3 * amount, MAX_CHOSEN) == [5, 4, 3]
    assert search.most_worth(both, sum([amount] * 4), MAX_CHOSEN) == [9, 3, 2]


def test_few_pieces_of_long_answers_are_ranked(provider):
    """However many have the words, a recall ranks `MAX_ANSWERS`; the person's words all count."""
    turns = 8
    for n in range(turns):
        feed(provider, [turn(f"Tell me of oven {n}", LONG_ANSWER)], first=n + 1, at=AT + n)

    with (
        provider.opened.reading(MINE, 5) as facts,
        mock.patch.object(search, "rank_facts", wraps=search.rank_facts) as ranked,
    ):
        facts.answer("Which oven heats evenly with a clean fan?", MINE, now=AT + 9)

    talk, answers = (call.args[1] for call in ranked.call_args_list)
    assert len(talk) == turns
    assert len(answers) == search.MAX_ANSWERS < len(stored(provider)) - turns


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


ADVICE = " ".join(
    f"Tip {n}: a tight budget for the kitchen holds if the tiles and the oven are bought early."
    for n in range(12)
)
"""A long answer that speaks of all that the person speaks of."""

BUDGET = 2_000


def recalled(provider: HolographicProvider, question: str) -> list[tuple[str, str]]:
    """Return speaker and text of each memory."""
    ctx = RecallContext(MINE, budget=BUDGET)
    return [(one.speaker, one.text) for one in provider.prefetch(question, ctx)]


def talk(provider: HolographicProvider) -> None:
    """Let a person say something, and the assistant answer at length, ten times."""
    for day in range(10):
        said = turn(f"My budget for the kitchen is now {day}400 francs", ADVICE)
        feed(provider, [said], first=day + 1, at=AT + day * DAY)


def test_the_persons_words_come_before_general_advice(provider):
    """However much the assistant wrote with the same words, the person's own are all there."""
    talk(provider)

    found = recalled(provider, "What is my budget for the kitchen?")

    assert [speaker for speaker, _ in found][:3] == ["user"] * 3
    assert sum(speaker == "user" for speaker, _ in found) == 10
    assert sum(len(text) for speaker, text in found if speaker != "user") <= 0.25 * BUDGET


def test_more_of_it_is_given_if_the_prompt_asks_for_it(provider):
    """What the assistant recommended gets more than its usual share, half at most."""
    talk(provider)

    def answers(question: str) -> int:
        found = recalled(provider, question)
        return sum(len(text) for speaker, text in found if speaker == "assistant")

    usual = answers("kitchen budget tiles")

    assert 2 * usual <= answers("What did you recommend: kitchen budget tiles?") <= 0.5 * BUDGET


@pytest.mark.parametrize(
    ("prompt", "share"),
    [
        ("How did you recommend tiling the kitchen?", ASKED_SHARE),
        ("You already told me which oven to buy", ASKED_SHARE),
        ("What was your advice about the tiles?", ASKED_SHARE),
        ("Can you suggest tiles for the kitchen?", USUAL_SHARE),
        ("Could you give me a summary of the kitchen budget?", USUAL_SHARE),
        ("Which oven did I mention before we discussed tiles?", USUAL_SHARE),
    ],
)
def test_only_a_prompt_for_earlier_answers_asks_for_them(prompt: str, share: float) -> None:
    """A request for something new, or for what the person said, leaves them their usual share."""
    assert share_of_answers(prompt) == share


@pytest.mark.parametrize(
    "question", ["What did I say about the kitchen last week?", "kitchen budget on 20 November"]
)
def test_each_piece_is_given_once(question, provider):
    """A time in the question finds pieces of both kinds; none of them stands twice."""
    talk(provider)
    now = AT + 9 * DAY

    ctx = RecallContext(MINE, budget=20_000, as_of=now)
    texts = [(one.event, one.text) for one in provider.prefetch(question, ctx)]

    assert texts
    assert len(texts) == len(set(texts))
    with provider.opened.reading(MINE, 5) as search:
        rows = [one.fact.id for one in search.answer(question, MINE, now=now)]
    assert len(rows) == len(set(rows))


def test_an_owner_has_all_pieces(provider):
    """The number of an owner's facts counts long answers, too, and falls when they go."""
    talk(provider)

    (owner,) = provider.owners()

    assert owner.memories == len(stored(provider)) > 10 * (1 + len(ADVICE) // MAX_PASSAGE_CHARS)
