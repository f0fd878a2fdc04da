"""What to do after a failure: pure decisions, no clock and no I/O (design, part 5)."""

import random
from typing import Literal

import msgspec
from memorybus.errors import ProviderError, StaleEpoch, Transient, Unavailable
from memorybus.retrying import backoff

_FIRST = 0.1
_CAP = 30.0
_REASON_LENGTH = 500

Action = Literal["retry", "park", "pause", "stop"]


class Decision(msgspec.Struct, frozen=True):
    """What to do with an event that failed.

    Attributes:
        action: try the event again; park its key (G6); pause the whole provider, nothing is
            parked; stop, because the lane has another owner (G5).
        delay: seconds to wait before, for "retry" and "pause".
    """

    action: Action
    delay: float = 0.0


def decide(error: BaseException, attempt: int, attempts: int, rng: random.Random) -> Decision:
    """Decide what follows a failure of one event.

    Args:
        error: what the provider raised.
        attempt: how often the event has been tried, from 1.
        attempts: how often it may be tried.
        rng: jitter.
    """
    if isinstance(error, StaleEpoch):
        return Decision("stop")
    if isinstance(error, Unavailable):
        return Decision("pause", pause(attempt, rng))
    if isinstance(error, Transient) and attempt < attempts:
        return Decision("retry", pause(attempt, rng))
    return Decision("park")


def pause(failures: int, rng: random.Random) -> float:
    """Return the seconds to wait after the n-th failure in a row (from 1): doubled, jittered."""
    return backoff(failures - 1, rng, first=_FIRST, cap=_CAP)


def reason(error: BaseException) -> str:
    """Return why an event was parked, in one bounded line for people.

    A provider's own errors speak for themselves; of any other the type is told too.
    """
    text = " ".join(str(error).split()) or "no message"
    if not isinstance(error, ProviderError):
        text = f"{type(error).__name__}: {text}"
    return text.encode("utf-8", "replace").decode()[:_REASON_LENGTH]


class Breaker:
    """Counts a provider's failures in a row; while it is open, its lanes wait (no dead letters)."""

    def __init__(self, rng: random.Random) -> None:
        """Start closed."""
        self.failures = 0
        self.until = 0.0
        self._rng = rng

    def failed(self, now: float) -> float:
        """Open, or stay open longer; return for how many seconds."""
        self.failures += 1
        delay = pause(self.failures, self._rng)
        self.until = now + delay
        return delay

    def succeeded(self) -> None:
        """Close."""
        self.failures = 0
        self.until = 0.0
