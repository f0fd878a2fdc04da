"""Long answers of an assistant: searched by themselves, with a share of the block."""

import pytest
from memorybus_providers.base import RecallContext
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.ranking.facts import MAX_PASSAGE_CHARS
from memorybus_providers.ranking.shares import ASKED_SHARE, USUAL_SHARE, share_of_answers
from unit.holographic.holographic_feeding import AT, DAY, MINE, feed, stored, turn

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
