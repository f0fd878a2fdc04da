"""How long to wait before another attempt, start of a process, or look: pure functions."""

import random

_FIRST_DELAY = 0.05
_MAX_DELAY = 5.0
_FIRST_POLL_SECONDS = 0.002
_MAX_POLL_SECONDS = 0.05
FIRST_RESTART = 0.5
LONGEST_RESTART = 30.0
HEALTHY_SECONDS = 10.0
"""After a process ran for this many seconds, its next restart waits for the first delay again."""


def backoff(
    attempt: int, rng: random.Random, *, first: float = _FIRST_DELAY, cap: float = _MAX_DELAY
) -> float:
    """Return the seconds to wait after failures in a row: doubled each time, capped, jittered."""
    ceiling: float = min(cap, first * 2 ** min(attempt, 20))
    return ceiling * (0.5 + rng.random() / 2)


def look_pause(waited: float) -> float:
    """Return the seconds until another look for an answer: an eighth of those `waited` so far."""
    return min(_MAX_POLL_SECONDS, max(_FIRST_POLL_SECONDS, waited / 8))


def restart_delay(ran_for: float, previous: float) -> float:
    """Return the seconds until a process that died after `ran_for` seconds is started again."""
    if ran_for >= HEALTHY_SECONDS or previous == 0:
        return FIRST_RESTART
    return min(previous * 2, LONGEST_RESTART)
