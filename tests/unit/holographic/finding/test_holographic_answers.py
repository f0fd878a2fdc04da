"""What kind of answer a question wants, and what asks rather than tells."""

import pytest
from memorybus_providers.holographic import HolographicProvider
from memorybus_providers.ranking.answers import KINDS, wanted_kind
from memorybus_providers.ranking.asking import asks, only_asks
from unit.holographic.holographic_feeding import feed, texts, turn


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("when did we sail", "time"),
        ("what year did we sail", "time"),
        ("for how long did we sail", "number"),
        ("where is the boat", "place"),
        ("which city has the harbour", "place"),
        ("which boat did we take", "name"),
        ("did we sail", None),
        ("wann sind wir gesegelt", None),
        ("", None),
    ],
)
def test_question_words_say_what_is_wanted(question: str, kind: str | None) -> None:
    """The first kind that a question asks for is wanted; none of another language."""
    assert wanted_kind(question) == (KINDS[kind] if kind else None)


@pytest.mark.parametrize(
    ("kind", "text", "fits"),
    [
        ("time", "We sailed last Friday", True),
        ("time", "We sailed in 2021", True),
        ("time", "We may sail", False),
        ("number", "It took 3 of us", True),
        ("number", "Twice", True),
        ("number", "Often", False),
        ("place", "We sailed to Aland", True),
        ("place", "At home", True),
        ("place", "To I know not whom", False),
        ("place", "It sails in October", False),
        ("name", "We took the Albatross", True),
        ("name", "We took a boat", False),
        ("name", "", False),
    ],
)
def test_what_looks_like_an_answer(kind: str, text: str, fits: bool) -> None:
    """A time, a number, a place or a name is known by its form, without knowing its meaning."""
    assert KINDS[kind].fits(text) is fits


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("When did we paint the boat?", "We did paint the boat yesterday"),
        ("How many of us did paint the boat?", "We did paint the boat, all five of us"),
        ("Where did we paint the boat?", "We did paint the boat at home by the sea"),
        ("What did we paint?", "We did paint the boat, the Albatross"),
    ],
)
def test_the_wanted_kind_comes_first(
    question: str, best: str, provider: HolographicProvider
) -> None:
    """Of facts that share as many words, one that looks like the wanted answer is first."""
    said = (
        "We did paint the boat yesterday",
        "We did paint the boat, all five of us",
        "We did paint the boat at home by the sea",
        "We did paint the boat, the Albatross",
    )
    for n, text in enumerate(said):
        feed(provider, [turn(text)], first=n + 1, session=f"s{n}")

    assert texts(provider, question)[0] == best


@pytest.mark.parametrize(
    ("text", "asking", "only"),
    [
        ("Is the ferry late?", True, True),
        ("Wow, nice! Is the ferry late?!", True, True),
        ("Is it late? Does it sail? [photo: a ferry]", True, True),
        ("The ferry left the harbour. Is it late?", True, False),
        ("Is it late? I think it is.", False, False),
        ("The ferry is late", False, False),
        ("", False, False),
    ],
)
def test_what_asks(text: str, asking: bool, only: bool) -> None:
    """A text asks that ends with a question; it only asks if all of it does."""
    assert (asks(text), only_asks(text)) == (asking, only)
