"""The outcomes of applying one event."""

from typing import Final

import msgspec

from memorybus_workers.calls.retry import RetryAt


class Done(msgspec.Struct, frozen=True):
    """The event is applied, or there was nothing to do for it."""


class Parked(msgspec.Struct, frozen=True):
    """The event waits in the lane's dead letters: it counts as done for the checkpoint."""


TryVerdict = Done | Parked | RetryAt
DONE: Final = Done()
PARKED: Final = Parked()
