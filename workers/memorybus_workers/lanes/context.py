"""What every thread of a worker shares."""

import random

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.query.ranges import WHOLE, Plan
from memorybus.testing import CrashPoint

from memorybus_workers.lanes.isolation import Alone
from memorybus_workers.lanes.leases import Leases


class Surroundings(msgspec.Struct, frozen=True):
    """Settings, time, chance, leases and crash points.

    Attributes:
        alone: what is tried alone now.
        entries_read: whether the server's consumer groups count entries read.
        answering: whether those are answered who wait for what became of their event.
        stands_for: the provider as agents know it, if the instance is a copy of it.
        plan: what the instance takes of the history; what it does not take counts as done.
    """

    settings: Settings
    clock: Clock
    rng: random.Random
    leases: Leases
    alone: Alone
    crash: CrashPoint
    entries_read: bool
    answering: bool = True
    stands_for: str = ""
    plan: Plan = WHOLE
