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
"""How near the nearest fact without a word of the question is where meaning counts for nothing, and
where it counts in full."""

EXPECTED = 0.6
"""What is asked of an answer where meaning counts in full, beside what is asked of its words: as a
share of that."""


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
    """Return the factor of what is asked of an answer: it may gain by its meaning, too."""
    return 1 + EXPECTED * believed
