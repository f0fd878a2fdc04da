"""What an applier knows of the lane it works for, and how it asks to be called again."""

from typing import Protocol

from memorybus_workers.deadletter import Parked


class Place(Protocol):
    """What an applier needs to know of the lane it works for."""

    partition: int
    epoch: int
    parked: Parked

    def check(self, room: float = 0.0) -> None:
        """Make sure that the lane is still ours, for `room` seconds at least.

        Raises:
            LeaseLost: it is not, or nobody knows.
        """
        ...


class Later(Exception):
    """An event failed for now: come back to its lane after `delay` seconds."""

    def __init__(self, delay: float) -> None:
        """Say when."""
        super().__init__(f"again in {delay:.1f} s")
        self.delay = delay
