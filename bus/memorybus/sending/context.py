"""Holds what every part of sending needs; a process makes one such object."""

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
        clock: tells the time.
        rng: makes the jitter of the back-off.
        new_id: makes the ids of spools.
        crash: called at the points where fault tests kill the process.
    """

    settings: Settings
    clock: Clock = SYSTEM
    rng: random.Random = msgspec.field(default_factory=new_rng)
    new_id: NewId = ids.new_id
    crash: CrashPoint = no_crash
