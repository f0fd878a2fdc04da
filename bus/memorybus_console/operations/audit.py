"""Records what operators change as events in the log: who did what, and why."""

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed, Scope, SessionRef
from memorybus.redis.keys import session_key

from memorybus_console.operations.stores import Stores

OPERATORS = Scope(agent="memorybus", user="operators")
"""The scope of these events, which belong to no agent and no person."""

SESSION = "operators"
"""The session of all these events."""

LOG_TIMEOUT = 3.0
"""Seconds to wait until Redis has taken an event; one that it did not take is spooled."""


def record_act(settings: Settings, act: OperatorActed) -> None:
    """Publish what an operator did; when this returns, it is in the log or spooled on this host.

    Raises:
        MemoryBusError: it cannot be spooled, or Redis is away, so that nothing can be done.
    """
    with Stores(settings) as stores:
        stores.check_partitions()
    with MemoryBus.connect(settings) as bus:
        bus.publish(
            act,
            key=session_key(OPERATORS, SESSION),
            scope=OPERATORS,
            session=SessionRef(id=SESSION, root=SESSION),
            durable=True,
        )
        bus.flush("logged", timeout=LOG_TIMEOUT)
