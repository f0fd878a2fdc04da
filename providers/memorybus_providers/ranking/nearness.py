"""Decides how much the meaning of a fact counts in addition to its words; pure.

Both are measured by the rarity of the question's words. How far meaning is believed is decided for
each question. A model that knows little more than words finds only facts near that share words with
the question, and those count already. A model that also finds a fact near that shares no word is
believed.
"""

from collections.abc import Iterable, Mapping

MAX_GAIN = 1.2
"""The gain of a fact that means exactly the same, in units of the question's rarity."""

DOUBTED_NEARNESS = 0.2
BELIEVED_NEARNESS = 0.4
"""Nearness of the nearest fact that shares no word with the question: up to the first, meaning
counts for nothing; from the second on, in full."""

EXTRA_EXPECTED_SHARE = 0.6
"""How much more, as a share, is asked of an answer if meaning counts in full: it gains, too."""


def belief(without_words: Iterable[float]) -> float:
    """Return how far meaning counts for a question, from 0 to 1.

    Args:
        without_words: how near the facts are that hold no word of the question.
    """
    nearest = max(without_words, default=0.0)
    return min(1.0, max(0.0, (nearest - DOUBTED_NEARNESS) / (BELIEVED_NEARNESS - DOUBTED_NEARNESS)))


def meaning_amounts(
    near: Mapping[int, float], rarities: Iterable[float], believed: float
) -> dict[int, float]:
    """Return how much each fact gains; facts that gain nothing are left out.

    Args:
        near: how near a fact's meaning is to the question's, from 0 to 1.
        rarities: the rarities of the question's words.
        believed: how far meaning counts (see `belief`).
    """
    worth = MAX_GAIN * believed * sum(rarities)
    return {fact: worth * nearness for fact, nearness in near.items() if worth * nearness}


def more_expected(believed: float) -> float:
    """Return the factor by which the required fit grows, since facts may gain by their meaning."""
    return 1 + EXTRA_EXPECTED_SHARE * believed
