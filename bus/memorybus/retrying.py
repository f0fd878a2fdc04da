"""How long to wait before another try: a pure function."""

import random

_FIRST = 0.05
_CAP = 5.0


def backoff(attempt: int, rng: random.Random, *, first: float = _FIRST, cap: float = _CAP) -> float:
    """Return the seconds to wait after failures in a row: doubled each time, capped, jittered.

    Args:
        attempt: how many there were before this one.
        rng: jitter.
        first: the longest wait after the first; the default suits Redis.
        cap: the longest wait of all.
    """
    ceiling: float = min(cap, first * 2 ** min(attempt, 20))
    return ceiling * (0.5 + rng.random() / 2)
