"""Counts the attempts to reach Redis, and says how long a caller still waits for it."""

from collections.abc import Callable


class ConnectionAttempts:
    """Counts attempts to reach Redis. The flusher makes them; other threads read the counts.

    Attributes:
        in_a_row: how many attempts have failed since the last success.
    """

    def __init__(self) -> None:
        """Count from zero."""
        self.in_a_row = 0
        self._begun = 0
        self._failed = 0
        self._timed_out = (0, 0.0)

    def begin(self) -> None:
        """Note that an attempt to connect begins."""
        self._begun += 1

    def fail(self) -> None:
        """Note that the connection failed, at once or later on."""
        self._failed = self._begun
        self.in_a_row += 1

    def succeed(self) -> None:
        """Note that the connection works."""
        self.in_a_row = 0

    def fails_from_now(self) -> Callable[[], bool]:
        """Return a function that says whether an attempt begun after this call has failed."""
        begun = self._begun
        return lambda: self._failed > begun

    def time_left(self, taken: int, timeout: float) -> float:
        """Return how many seconds of a time-out are left after earlier calls have waited in vain.

        Args:
            taken: how many events Redis has taken; once it takes one more, the whole time-out
                counts again.
            timeout: seconds.
        """
        before, waited = self._timed_out
        return timeout - waited if taken == before else timeout

    def time_out(self, taken: int, timeout: float) -> None:
        """Note that a time-out has passed; Redis had taken `taken` events when it began."""
        before, waited = self._timed_out
        self._timed_out = (taken, max(timeout, waited) if taken == before else timeout)
