"""What the meaning of a fact is worth beside its words; pure.

Both are amounts of one measure, the rarity of the question's words. How far meaning is believed is
decided for each question: a model that knows little more than words brings near only what shares
words, which count already. One that also brings near a fact that shares none has understood.
"""

from collections.abc import Iterable, Mapping

WORTH = 1.2
"""What a fact that means exactly the same gains, times the rarity of the question's words."""

DOUBTED = 0.2
BELIEVED = 0.4
"""Nearness of the nearest fact that shares no word with the question: up to the first, meaning
counts for nothing; from the second on, in full."""

EXPECTED = 0.6
"""By which share more is asked of an answer where meaning counts in full: it gains by it, too."""


def belief(without_words: Iterable[float]) -> float:
    """Return how far meaning counts for a question, from 0 to 1.

    Args:
        without_words: how near the facts are that hold no word of the question.
    """
    nearest = max(without_words, default=0.0)
    return min(1.0, max(0.0, (nearest - DOUBTED) / (BELIEVED - DOUBTED)))


def meaning_amounts(
    near: Mapping[int, float], rarities: Iterable[float], believed: float
) -> dict[int, float]:
    """Return what each fact gains; what gains nothing is left out.

    Args:
        near: how near a fact's meaning is to the question's, from 0 to 1.
        rarities: of the question's words.
        believed: how far meaning counts (see `belief`).
    """
    worth = WORTH * believed * sum(rarities)
    return {fact: worth * nearness for fact, nearness in near.items() if worth * nearness}


def more_expected(believed: float) -> float:
    """Return the factor by which more is asked of an answer, since it may gain by its meaning."""
    return 1 + EXPECTED * believed
