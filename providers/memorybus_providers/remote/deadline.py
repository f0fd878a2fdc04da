"""Limits the time that all requests of one hook may take together."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from memorybus.clock import Clock

DEADLINE_SHARE = 0.8
"""The part of a hook's deadline that its requests may take together; the rest is for our code."""


class SharedDeadline:
    """The time that is left before a hook's deadline; each thread has its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limits = threading.local()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let the requests of a block share `seconds`, or what an outer block has left if less."""
        outer = self._until
        self._limits.until = min(outer, self._clock.monotonic() + DEADLINE_SHARE * seconds)
        try:
            yield
        finally:
            self._limits.until = outer

    def seconds_left(self) -> float:
        """Return the seconds that are left: below 0 after the end, infinite outside of a block."""
        return self._until - self._clock.monotonic()

    @property
    def _until(self) -> float:
        return float(getattr(self._limits, "until", math.inf))
