"""Computes how much a fact is trusted from how it was judged; pure."""

from functools import lru_cache

INITIAL_TRUST = 0.5  # trust in a fact that nobody has judged

HELPFUL_STEP = 0.05
UNHELPFUL_STEP = -0.10  # what a judgement adds to a fact's trust; their sum is cut to 0 and 1


@lru_cache(maxsize=4_096)  # a recall reads hundreds of facts, and most were never judged
def trust_of(helpful: int, unhelpful: int) -> float:
    """Return the trust in a fact, 0 to 1, from how often it was judged each way."""
    return min(
        1.0, max(0.0, round(INITIAL_TRUST + HELPFUL_STEP * helpful + UNHELPFUL_STEP * unhelpful, 4))
    )
