"""A deadline that passes when the test wants it to, on however slow a machine."""

from memorybus.testing import FakeClock

_LATER_SECONDS = 3_600.0


class TimeUp(FakeClock):
    """A clock that stands still for so many looks, and by which it is too late at all later ones.

    Who waits for answers looks once to know its deadline and once before it waits for each answer.

    Attributes:
        looks: how many are left.
    """

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def monotonic(self) -> float:
        """Return the time, or that it is up."""
        self.looks -= 1
        return super().monotonic() + (0.0 if self.looks >= 0 else _LATER_SECONDS)
