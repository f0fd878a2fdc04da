"""The tries to reach Redis, as the thread that tries and those that wait for it see them."""

from collections.abc import Callable


class Tries:
    """Counts tries. One thread begins and ends them; others look, at one number at a time.

    Attributes:
        in_a_row: how many failed since the last that did not.
        vain: how many events Redis had taken when somebody waited for it in vain; -1 if nobody did.
    """

    def __init__(self) -> None:
        """Nothing was tried."""
        self.in_a_row = 0
        self.vain = -1
        self._begun = 0
        self._failed = 0

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
