"""Where an answer ends: at facts that are not worth their room; pure.

A block of memories costs an agent tokens, and attention. So it is not filled for its own sake: the
fuller it is, the better a fact must be. An agent that gives more room than usual wants more, so
weaker facts are let in. And where even the best fact says little of what is asked for, nothing was
ever said of it: there is no answer, and none is given.
"""

import math
from collections.abc import Iterator, Sequence

from memorybus_providers.ranking.ranking import LINE, Scored

LEAST_FIT = 0.45
"""`Scored.fit` of the best fact from which there is an answer."""

LEAST_SHARE = 0.5
"""Share of the best fact's score that the last fact of a full block must have; of a block that is
filled by a quarter, half as much."""

USUAL_BUDGET = 2_000
"""Characters of an answer up to which `LEAST_SHARE` holds. Beyond, it falls with the root of the
budget: four times as many characters let in facts that are half as good."""


def cut_off(scored: Sequence[Scored], budget: int) -> Iterator[Scored]:
    """Yield the facts that are worth their room, in their order.

    Args:
        scored: what was found.
        budget: characters of the whole answer.
    """
    best = max(scored, key=lambda one: one.score, default=None)
    if best is None or best.fit < LEAST_FIT:
        return
    used = 0
    for one in scored:
        if one.score >= best.score * _least_share(used, budget):
            yield one
            used += len(one.fact.content) + LINE


def _least_share(used: int, budget: int) -> float:
    """Return the share of the best score that a fact must have after so many characters."""
    fullness = min(1.0, used / budget)
    usualness = min(1.0, USUAL_BUDGET / budget)
    return LEAST_SHARE * math.sqrt(fullness * usualness)
