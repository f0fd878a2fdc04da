"""Leaves out of an answer what is not worth its room; pure.

A block of memories costs an agent tokens and attention. So the longer a fact is, and the more was
found before it, the better it must be; half as good as the best one is enough in any case. An agent
that gives more room than usual wants more. If even the best fact covers little of what is asked
for, there is no answer, and nothing is given.
"""

import math
from collections.abc import Iterator, Sequence

from memorybus_providers.ranking.ranking import LINE_CHARS, USUAL_LINE_CHARS, Scored, is_answer

LEAST_SHARE = 0.4
"""The least share of the best fact's score for the last usual line of a full block; half as much
for one that is filled to a quarter, or for a line of half the length."""

ENOUGH_SHARE = 0.5
"""The share of the best fact's score with which a fact is worth its room, however long it is."""

USUAL_BUDGET = 2_000
"""Characters of an answer up to which `LEAST_SHARE` holds. Twice as many let in facts that are half
as good."""


def cut_off(scored: Sequence[Scored], budget: int) -> Iterator[Scored]:
    """Yield the facts that are worth their room, in their order.

    Args:
        scored: what was found, best first.
        budget: characters of the whole answer.
    """
    if not is_answer(scored):
        return
    best = max(candidate.score for candidate in scored)
    before = 0
    for candidate in scored:
        chars = len(candidate.fact.content) + LINE_CHARS
        if candidate.score >= best * _least_share(chars, before, budget):
            yield candidate
        before += chars


def _least_share(chars: int, before: int, budget: int) -> float:
    """Return the share of the best score that a line of `chars` must have.

    Args:
        before: characters of all that was found before it.
        budget: characters of the whole answer.
    """
    fullness = math.sqrt(min(1.0, before / budget))
    usualness = min(1.0, USUAL_BUDGET / budget)
    return min(ENOUGH_SHARE, LEAST_SHARE * chars / USUAL_LINE_CHARS * fullness * usualness)
