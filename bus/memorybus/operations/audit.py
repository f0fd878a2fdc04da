"""What operators change from the page, told to the log: who, what, of what and why."""

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import OperatorActed, Scope, SessionRef
from memorybus.health.monitor import open_monitor
from memorybus.redis.keys import session_key

OPERATORS = Scope(agent="memorybus", user="operators")
"""Whose these events are: of no agent and of no person."""

SESSION = "operators"
"""The session in which all of them are."""

LOG_TIMEOUT = 3.0
"""Seconds that we wait for Redis to take one; what it did not take is spooled."""


class OutdatedWorkers(ConfigError):
    """Workers of an earlier release are alive, which would park the record of an act."""


def tell(settings: Settings, act: OperatorActed) -> None:
    """Publish an act; when this returns, it is in the log or spooled on this host.

    Raises:
        OutdatedWorkers: see there.
        MemoryBusError: it cannot be spooled, or Redis is away: nobody knows who is alive.
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
