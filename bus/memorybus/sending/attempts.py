"""The tries to reach Redis, as the thread that tries and those that wait for it see them."""

from collections.abc import Callable


class Tries:
    """Counts tries. One thread begins and ends them; others look, at one number at a time.

    Attributes:
        in_a_row: how many failed since the last that did not.
    """

    def __init__(self) -> None:
        """Nothing was tried."""
        self.in_a_row = 0
        self._begun = 0
        self._failed = 0
        self._vain = (0, 0.0)

    def begin(self) -> None:
        """Note that a connection is tried."""
        self._begun += 1

    def fail(self) -> None:
        """Note that it failed, at once or later on."""
        self._failed = self._begun
        self.in_a_row += 1

    def succeed(self) -> None:
        """Note that it serves."""
        self.in_a_row = 0

    def failed_anew(self) -> Callable[[], bool]:
        """Return what says whether a connection failed that was tried after this call."""
        begun = self._begun
        return lambda: self._failed > begun

    def patience(self, taken: int, timeout: float) -> float:
        """Return what is left of a time-out, as others waited in vain before.

        Args:
            taken: how many events Redis has taken; with one more, it is waited for anew.
            timeout: seconds.
        """
        before, waited = self._vain
        return timeout - waited if taken == before else timeout

    def in_vain(self, taken: int, timeout: float) -> None:
        """Note that a time-out has passed, and Redis had taken so many events when it began."""
        before, waited = self._vain
        self._vain = (taken, max(timeout, waited) if taken == before else timeout)
