"""What became of one event that was to be applied."""

from typing import Final

import msgspec


class Done(msgspec.Struct, frozen=True):
    """The event is applied, or there was nothing to do for it."""


class Parked(msgspec.Struct, frozen=True):
    """The event waits in the lane's dead letters: it counts as done for the checkpoint."""


class RetryAt(msgspec.Struct, frozen=True):
    """The event stays open, and its key waits.

    Attributes:
        at: when to try it again (monotonic seconds).
    """

    at: float


Verdict = Done | Parked | RetryAt

DONE: Final = Done()
PARKED: Final = Parked()
