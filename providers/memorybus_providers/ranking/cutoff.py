"""Where an answer ends: at facts that are not worth their room; pure.

A block of memories costs an agent tokens, and attention. So it is not filled for its own sake: the
fuller it is, the better a fact must be. And where even the best fact says little of what is asked
for, nothing was ever said of it: there is no answer, and none is given.
"""

import math
from collections.abc import Iterator, Sequence

from memorybus_providers.ranking.ranking import LINE, Scored

LEAST_FIT = 0.5
"""`Scored.fit` of the best fact from which there is an answer."""

LEAST_SHARE = 0.5
"""Share of the best fact's score that the last fact of a full block must have; of a block that is
filled by a quarter, half as much."""


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
        if one.score >= best.score * LEAST_SHARE * math.sqrt(min(1.0, used / budget)):
            yield one
            used += len(one.fact.content) + LINE
