"""A provider instance at work."""

from collections.abc import Callable

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus_providers.base import HookContext, MemoryProvider

from memorybus_workers.calls.retry import Breaker
from memorybus_workers.calls.tracker import Slot, Troubles
from memorybus_workers.lanes.isolation import Alone


class Serving(msgspec.Struct, frozen=True):
    """One provider instance at work, and what is known of its calls.

    Attributes:
        before_retracting: called before it forgets what was taken back; None if it answers nobody.
    """

    provider: MemoryProvider
    settings: Settings
    clock: Clock
    slot: Slot
    troubles: Troubles
    breaker: Breaker
    alone: Alone
    before_retracting: Callable[[HookContext], None] | None = None
