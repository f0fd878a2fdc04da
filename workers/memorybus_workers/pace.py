"""How fast an instance may go through the history: a bucket that fills with time (``rate``)."""

from collections.abc import Sequence

from memorybus.clock import Clock
from memorybus.events import Omitted
from memorybus.logged import LoggedEvent

BURST = 1.0
"""Seconds' worth of events that the bucket holds."""

_UNBOUND = float("inf")
_LEAST = 64
"""Read at least so many: what the plan leaves out is free, and may be most of it."""


class Pace:
    """Lets so many events of an instance through in a second. Belongs to one thread.

    What the plan leaves out costs nothing.
    """

    def __init__(self, clock: Clock, rate: float = 0.0) -> None:
        """Begin with one event; a rate of 0.0 is no bound."""
        self._clock = clock
        self._rate = self._here = rate
        self._left = 1.0
        self._at = clock.monotonic()

    def share(self, part: float) -> None:
        """Note which part of the instance's lanes is here: the rate is for all of them."""
        self._fill()
        self._here = self._rate * part

    def batch(self, most: int) -> int:
        """Return how many events to read now, of `most` otherwise; 0 while it is too early."""
        if not self._rate:
            return most
        self._fill()
        return 0 if self._left < 1 else min(most, max(_LEAST, int(self._left)))

    def taken(self, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        """Return as many of the events that were read as may go on now, and count them."""
        if not self._rate:
            return events
        for index, event in enumerate(events):
            if type(event.envelope.event) is not Omitted:
                if self._left < 1:
                    return events[:index]
                self._left -= 1
        return events

    def wait(self) -> float:
        """Return the seconds until the next event may go on."""
        if not self._rate:
            return 0.0
        self._fill()
        missing = 1 - self._left
        if missing <= 0:
            return 0.0
        return missing / self._here if self._here else _UNBOUND

    def _fill(self) -> None:
        now = self._clock.monotonic()
        most = max(1.0, self._here * BURST)
        self._left = min(most, self._left + (now - self._at) * self._here)
        self._at = now
