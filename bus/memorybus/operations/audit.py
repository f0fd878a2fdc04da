"""Records what operators change on the page as events in the log: who did what, and why."""

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import OperatorActed, Scope, SessionRef
from memorybus.health.monitor import open_monitor
from memorybus.redis.keys import session_key

OPERATORS = Scope(agent="memorybus", user="operators")
"""The scope of these events, which belong to no agent and no person."""

SESSION = "operators"
"""The session of all these events."""

LOG_TIMEOUT = 3.0
"""Seconds to wait until Redis has taken an event; one that it did not take is spooled."""


class OutdatedWorkers(ConfigError):
    """Workers of an earlier release are alive; they would park the record of an act."""


def record_act(settings: Settings, act: OperatorActed) -> None:
    """Publish what an operator did; when this returns, it is in the log or spooled on this host.

    Raises:
        OutdatedWorkers: a worker of an earlier release is alive.
        MemoryBusError: it cannot be spooled, or Redis is away, so that the workers are unknown.
    """
    with open_monitor(settings) as monitor:
        if any(not worker.version for worker in monitor.roster.alive()):
            raise OutdatedWorkers(
                "workers of an earlier release are alive, and would park the record of this act; "
                "finish the upgrade, or use the command line"
            )
    with MemoryBus.connect(settings) as bus:
        bus.publish(
            act,
            key=session_key(OPERATORS, SESSION),
            scope=OPERATORS,
            session=SessionRef(id=SESSION, root=SESSION),
            durable=True,
        )
        bus.flush("logged", timeout=LOG_TIMEOUT)
