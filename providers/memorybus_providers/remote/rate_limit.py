"""The time for which a service has asked to be left alone (HTTP 429 and its ``Retry-After``)."""

from email.utils import parsedate_to_datetime

from memorybus.clock import Clock
from memorybus.errors import Unavailable

UNSAID = 5.0
"""Seconds without a call after a 429 that names none."""

LONGEST = 3_600.0
"""Seconds that a service is believed at most (G10)."""


class Truce:
    """Refuses calls until the service may be asked again: no request is spent on a second refusal.

    It is `Unavailable` meanwhile, since a rate limit is no event's fault. May be used from several
    threads.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin without a limit."""
        self._clock = clock
        self._until = 0.0

    def check(self, service: str) -> None:
        """Return if a call may be made.

        Raises:
            Unavailable: not yet; it names the seconds.
        """
        left = self._until - self._clock.monotonic()
        if left > 0:
            raise Unavailable(f"{service} asked for a pause: no call for {left:.1f} s more")

    def asked(self, seconds: float | None) -> None:
        """Note that the service asked for a pause, of so many seconds if it said."""
        wanted = UNSAID if seconds is None else min(max(seconds, 0.0), LONGEST)
        self._until = max(self._until, self._clock.monotonic() + wanted)


def seconds_of(header: str | None, now_ms: int) -> float | None:
    """Return the seconds that a ``Retry-After`` asks for: a number, or a date; None if neither."""
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
