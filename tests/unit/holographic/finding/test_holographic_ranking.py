"""What comes first, and how much is given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Event
from memorybus_providers.finding.search import fit_budget
from memorybus_providers.ranking.excerpt import LEAST_CHARS
from memorybus_providers.ranking.ranking import Fact, Scored
from unit.holographic.holographic_feeding import (
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

FILLER = "The weather stayed grey and cold over the whole long week"
MAY_2023 = 1_683_500_000_000

ORDER: dict[str, tuple[list[Event], str, str]] = {
    "a rare word counts more than a common one": (
        [turn("tea tea", "tea and toast"), turn("tea house", "tea leaves"), turn("green teapot")],
        "tea in a teapot",
        "green teapot",
    ),
    "more of the question's words": (
        [turn("A red boat"), turn("A red boat at anchor"), turn("An anchor")],
        "Which red boat lay at anchor?",
        "A red boat at anchor",
    ),
    "inflected and irregular forms": (
        [turn("Nothing of note"), turn("We bought two canoes"), turn("Some other day")],
        "What did they buy, a canoe?",
        "We bought two canoes",
    ),
    "who says it, not who is called": (
        [
            turn("", "I painted a sunset, dear me", user_name="Ann", assistant_name="Bob"),
            turn("I painted a sunset, dear Bob", "", user_name="Ann", assistant_name="Bob"),
        ],
        "What did Bob paint, a sunset?",
        "I painted a sunset, dear me",
    ),
    "a kept fact before a passing remark": (
        [turn("The gate code is 4711"), add("The gate code is 9174")],
        "gate code",
        "The gate code is 9174",
    ),
    "telling before asking": (
        [turn("The ferry is late"), turn(FILLER, FILLER), turn(FILLER), turn("Is the ferry late?")],
        "late ferry",
        "The ferry is late",
    ),
}


@pytest.mark.parametrize("case", ORDER)
def test_the_better_answer_comes_first(case, provider):
    """Each prior alone decides between two facts that are otherwise alike."""
    events, question, best = ORDER[case]
    feed(provider, events)

    assert texts(provider, question)[0] == best


CAPTIONS = ["", " [photo: a shelf]", '" ', ")"]


@pytest.mark.parametrize("caption", CAPTIONS)
def test_an_answer_comes_without_its_question(caption, provider):
    """What follows a matching question is found by it, and the question takes no room."""
    feed(provider, [turn(FILLER, FILLER) for _ in range(5)])
    asked = f"Which instrument do you play?{caption}"
    feed(provider, [turn(asked, "The cello, since I was six")], first=9)

    found = texts(provider, "instrument")
    assert found[0] == "The cello, since I was six"
    assert asked not in found


@pytest.mark.parametrize("asked", ["Where do I live?", "“So where do I live?”", "Live where?!"])
def test_what_only_asks_the_same_is_no_answer(asked, provider):
    """A question that was asked before is left out; what answers it, then or ever, is not."""
    feed(provider, [turn("I live near the harbour", "A fine place")], session="a")
    feed(provider, [turn(asked, "Near the harbour")], first=2, session="b")

    found = texts(provider, "Where do I live?")

    assert asked not in found
    assert {"I live near the harbour", "Near the harbour"} <= set(found)


def test_bare_questions_fill_no_block(provider):
    """Of questions that were answered only the answers are given, however many words they share."""
    for n, what in enumerate(("leave", "arrive", "sail", "dock")):
        feed(provider, [turn(f"When does the ferry {what}?", f"At {n} o'clock")], first=2 * n)
    feed(provider, [turn("The ferry ticket costs 9 euros", "Noted")], first=20)

    found = texts(provider, "What about the ferry?")

    assert found[0] == "The ferry ticket costs 9 euros"
    assert set(found[1:]) == {f"At {n} o'clock" for n in range(4)}


def test_a_question_with_a_long_answer_is_answered_too(provider):
    """A bare question fills no block, however long the assistant's answer to it is."""
    feed(provider, [turn("How do I wax the skis?", "Take a hot iron and wax. " * 60)], session="a")
    feed(provider, [turn("My skis are red")], first=2, session="b")

    found = texts(provider, "What about my skis?")

    assert "How do I wax the skis?" not in found
    assert "My skis are red" in found


def test_neighbours_in_another_session_gain_nothing(provider):
    """Only the same conversation is around a fact."""
    feed(provider, [turn("Which instrument do you play?")], session="a")
    feed(provider, [turn("The cello, since I was six")], first=2, session="b")

    assert texts(provider, "instrument") == ["Which instrument do you play?"]


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
