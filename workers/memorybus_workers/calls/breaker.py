"""Holds calls back while a provider's backend is down. Pure: the caller gives the time."""

import random

from memorybus_workers.calls.retry import retry_delay

STRIKES = 5
"""How many transient failures in a row, of any events, count as one failure of the backend."""


class Breaker:
    """Keeps a provider's calls back while its backend is down: nothing is parked for that (G6).

    A failure opens it for a while, which doubles each time; then one call at a time probes.
    """

    def __init__(self, rng: random.Random) -> None:
        self.failures = 0  # how many failures of the backend there were in a row
        self.until = 0.0  # the monotonic time before which no call is let through
        self.why = ""  # the error of the last call, until one succeeds
        self._failed_at = 0.0
        self._strikes = 0
        self._probing = False
        self._rng = rng

    @property
    def has_failures(self) -> bool:
        """Whether there are failures that a success would clear."""
        return self.failures > 0 or self._strikes > 0

    @property
    def is_closed(self) -> bool:
        return self.failures == 0

    def failing_for(self, now: float) -> float:
        """Return for how many seconds calls have failed; 0 if the last one succeeded."""
        return now - self._failed_at if self.why else 0.0

    def admit(self, now: float) -> bool:
        """Return whether a call may begin now; if it is the probe, it counts as begun."""
        if self.is_closed:
            return True
        if now < self.until or self._probing:
            return False
        self._probing = True
        return True

    def note_failure(self, now: float, why: str = "") -> float:
        """Note that the backend is down; open, or stay open longer; return for how many seconds."""
        if now >= self.until:
            self.failures += 1
            self.until = now + retry_delay(self.failures, self._rng)
        self._probing = False
        self._note_reason(now, why)
        return self.until - now

    def note_strike(self, now: float, why: str = "") -> None:
        """Note a failure that may be the event's fault; several in a row count as the backend's."""
        self._strikes += 1
        if self._strikes >= STRIKES or not self.is_closed:
            self.note_failure(now, why)
        self._probing = False
        self._note_reason(now, why)

    def _note_reason(self, now: float, why: str) -> None:
        if not self.why:
            self._failed_at = now
        self.why = why or self.why

    def retry_now(self) -> None:
        """Let the next call probe the backend at once; its outcome decides."""
        self.until = 0.0

    def release_probe(self) -> None:
        """Note that the probe ended without an answer from the backend; another call may probe."""
        self._probing = False

    def note_success(self) -> None:
        self.failures = 0
        self.until = 0.0
        self.why = ""
        self._strikes = 0
        self._probing = False
