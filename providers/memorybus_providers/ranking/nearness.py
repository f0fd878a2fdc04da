"""Decides how much the meaning of a fact counts in addition to its words; pure.

A model gives each question a level of its own: to one all facts of a scope are rather near, to
another none. So facts are ranked by how far they stand out from the others of their scope, in
standard deviations. Whether there is an answer at all is decided by the nearness itself: the
nearest of a thousand facts always stands out, also if none has to do with the question.
"""

import math
from collections.abc import Mapping

import msgspec

MAX_GAIN = 1.6  # the most that a fact gains by its meaning, in units of the question's rarity

LEAST_STANDING = 0.0
FULL_STANDING = 6.0
"""Standard deviations above the scope's mean: at the first a fact gains nothing, from the second
on all, between them in proportion."""

LEAST_NEARNESS = 0.2
"""Nearness that a fact needs if neither it nor a text around it has a word of the question."""

OPENING_NEARNESS = 0.4
"""Nearness of a fact with which there is an answer, whatever its words. Where no fact has a word of
the question, as in another language, `LEAST_NEARNESS` is enough."""

PRIOR_FACTS = 12
PRIOR_DEVIATION = 0.1
"""A scope counts as if it had so many further facts, as near as by chance, with this deviation: of
few facts it is not known how near they usually are."""


class Spread(msgspec.Struct, frozen=True):
    """How near the facts of a scope are to a question: how many there are, mean and deviation."""

    facts: int = 0
    mean: float = 0.0
    deviation: float = 0.0

    def near(self, nearness: float) -> "Near":
        """Return how near a fact of this nearness is, and how far it stands out."""
        count = self.facts + PRIOR_FACTS
        mean = self.facts * self.mean / count
        squares = self.facts * (self.deviation**2 + self.mean**2) + PRIOR_FACTS * PRIOR_DEVIATION**2
        standing = (nearness - mean) / math.sqrt(squares / count - mean**2)
        return Near(min(1.0, max(0.0, nearness)), standing)


class Near(msgspec.Struct, frozen=True):
    """How near a fact's meaning is to a question's."""

    nearness: float  # 0 if it is no nearer than by chance, 1 for the same text
    standing: float  # by how many standard deviations it stands out from the facts of its scope

    @property
    def is_enough(self) -> bool:
        """Whether it answers without a word of the question."""
        return self.nearness >= LEAST_NEARNESS

    def fit(self, *, known: bool) -> float:
        """Return how well it answers: 1 if there is an answer with it.

        Args:
            known: whether any fact has a word of the question.
        """
        return self.nearness / (OPENING_NEARNESS if known else LEAST_NEARNESS)


def meaning_amounts(near: Mapping[int, Near], rarity: float) -> dict[int, float]:
    """Return how much each fact gains; facts that gain nothing are left out.

    Args:
        near: how near facts are to the question, by their rows.
        rarity: that of the question's words.
    """
    amounts = {fact: MAX_GAIN * rarity * _share(one.standing) for fact, one in near.items()}
    return {fact: amount for fact, amount in amounts.items() if amount}


def _share(standing: float) -> float:
    share = (standing - LEAST_STANDING) / (FULL_STANDING - LEAST_STANDING)
    return min(1.0, max(0.0, share))
