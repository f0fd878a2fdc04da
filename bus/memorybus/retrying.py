"""How long to wait before another try at Redis: a pure function."""

import random

_BASE = 0.05
_CAP = 5.0


def backoff(attempt: int, rng: random.Random) -> float:
    """Return how long to wait after the n-th failure in a row: doubled, capped, full jitter."""
    ceiling: float = min(_CAP, _BASE * 2 ** min(attempt, 20))
    return ceiling * (0.5 + rng.random() / 2)
