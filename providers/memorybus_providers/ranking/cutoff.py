"""Ends an answer where further facts are not worth their room; pure.

A block of memories costs an agent tokens and attention. So the fuller the block is, the better a
further fact must be. An agent that gives more room than usual wants more, so weaker facts are
accepted. If even the best fact covers little of what is asked for, there is no answer, and nothing
is given.
"""

import math
from collections.abc import Iterator, Sequence

from memorybus_providers.ranking.ranking import LINE_CHARS, Scored, is_answer

LEAST_SHARE = 0.3
"""The least share of the best fact's score for the last fact of a full block; half as much for a
block that is filled to a quarter."""

USUAL_BUDGET = 2_000
"""Characters of an answer up to which `LEAST_SHARE` holds. Beyond, it falls with the root of the
budget: four times as many characters let in facts that are half as good."""


def cut_off(scored: Sequence[Scored], budget: int) -> Iterator[Scored]:
    """Yield the facts that are worth their room, in their order.

    Args:
        scored: what was found.
        budget: characters of the whole answer.
    """
    if not is_answer(scored):
        return
    best = max(one.score for one in scored)
    used = 0
    for one in scored:
        if one.score >= best * _least_share(used, budget):
            yield one
            used += len(one.fact.content) + LINE_CHARS


def _least_share(used: int, budget: int) -> float:
    """Return the share of the best score that a fact must have after so many characters."""
    fullness = min(1.0, used / budget)
    usualness = min(1.0, USUAL_BUDGET / budget)
    return LEAST_SHARE * math.sqrt(fullness * usualness)
