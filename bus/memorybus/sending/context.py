"""What everything on the way from an event to the log is given: one object for a process."""

import random

import msgspec

from memorybus import ids
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.ids import NewId, new_rng
from memorybus.testing import CrashPoint, no_crash


class SendingContext(msgspec.Struct, frozen=True):
    """What the publisher, the flusher and their senders share.

    Attributes:
        settings: see `Settings`.
        clock: time.
        rng: jitter of the back-off.
        new_id: ids of spools.
        crash: crash points of fault tests.
    """

    settings: Settings
    clock: Clock = SYSTEM
    rng: random.Random = msgspec.field(default_factory=new_rng)
    new_id: NewId = ids.new_id
    crash: CrashPoint = no_crash
