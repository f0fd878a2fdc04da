"""Keeps the pause that a service asked for (HTTP 429 and its ``Retry-After``)."""

from email.utils import parsedate_to_datetime

from memorybus.clock import Clock
from memorybus.errors import Unavailable

DEFAULT_PAUSE = 5.0
"""Seconds without a call after a 429 that names no time."""

LONGEST_PAUSE = 3_600.0
"""The most seconds of a pause, even if a service asks for more (G10)."""


class RateLimit:
    """Refuses calls until the service may be asked again, so that no request is wasted.

    It raises `Unavailable`, since a rate limit is not the fault of an event. May be used from
    several threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = 0.0

    def check(self, service: str) -> None:
        """Return if a call may be made.

        Raises:
            Unavailable: the pause is not over; the message names the seconds that are left.
        """
        left = self._until - self._clock.monotonic()
        if left > 0:
            raise Unavailable(f"{service} asked for a pause: no call for {left:.1f} s more")

    def note_pause(self, seconds: float | None) -> None:
        """Begin a pause that the service asked for; `seconds` is None if it named no time."""
        wanted = DEFAULT_PAUSE if seconds is None else min(max(seconds, 0.0), LONGEST_PAUSE)
        self._until = max(self._until, self._clock.monotonic() + wanted)


def retry_after_seconds(header: str | None, now_ms: int) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, by a number or a date; None if neither."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now_ms / 1_000)
    except ValueError:
        return None
