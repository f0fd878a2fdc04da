"""Bundles the stores that commands read and change, and records what operators do."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from typing import Self

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import OperatorActed, Scope, SessionRef
from memorybus.history.history import History
from memorybus.recall.health import RecallHealth
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, session_key
from memorybus.registry.homes import Homes
from memorybus.registry.instances import Instance, Instances, RetryRequests
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.rebuild_lock import RebuildCommand, RebuildLock, running_rebuilds
from memorybus.registry.roster import Roster


class Stores:
    """The stores for one command. Belongs to one thread; a ``with`` block closes them.

    Args:
        lock: the provider's lock, if the command takes it; `instances` then changes nothing unless
            the command still has the lock.

    Attributes:
        instances: the copies, the live instances and the paused ones.
        redis: the connection, for stores beside these.
        roster: what workers registered, and which workers are alive.
        retry_requests: what operators ask of running workers.
        history: archive and log, from which copies are filled.
    """

    def __init__(self, settings: Settings, lock: RebuildLock | None = None) -> None:
        redis = self.redis = connect_redis(settings)
        keys = self.keys = Keys(settings.namespace)
        self.settings = settings
        self.instances = Instances(redis, keys, lock)
        self.lanes = LaneKeys(redis, settings)  # what Redis holds of the instances' lanes
        self.homes = Homes(redis, keys)  # where the state of local instances lies
        self.roster = Roster(redis, keys)
        self.retry_requests = RetryRequests(redis, keys)
        self.recall_health = RecallHealth(redis, keys)
        self.history = History.from_settings(redis, settings)

    def check_partitions(self) -> None:
        """Make sure that the log has the partition count of the settings.

        Raises:
            WrongPartitionCount: it was created with another count.
        """
        self.history.log.check_partitions()

    def working_commands(self, providers: Iterable[str]) -> dict[str, RebuildCommand]:
        """Return the live commands that work on instances of these providers, by provider."""
        return running_rebuilds(self.redis, self.keys, providers)

    def add_instance(self, instance: Instance) -> None:
        """Record a new instance; workers serve it within a heartbeat.

        Raises:
            ConfigError: there is an instance of that name.
        """
        self.lanes.note_new_lanes(instance.name)
        self.instances.add(instance)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()


@contextmanager
def checked_stores(settings: Settings) -> Iterator[Stores]:
    """Open the stores of the log, and check them.

    Raises:
        WrongPartitionCount: the log was created with another number of partitions.
    """
    with Stores(settings) as stores:
        stores.check_partitions()
        yield stores


@contextmanager
def locked_stores(
    settings: Settings, provider: str, what: str, by: str
) -> Iterator[tuple[Stores, RebuildLock]]:
    """Open the stores, and have the provider's lock as long as the block lasts.

    Args:
        what: what the command does, for others that want the lock.

    Raises:
        RebuildRuns: another command works on the provider's instances.
    """
    with (
        closing(connect_redis(settings)) as redis,
        RebuildLock(redis, Keys(settings.namespace), provider, what, by) as lock,
        Stores(settings, lock) as stores,
    ):
        stores.check_partitions()
        yield stores, lock


def check_provider(stores: Stores, name: str) -> None:
    """Make sure that a provider is configured, or that workers registered it.

    Raises:
        ConfigError: it is unknown.
    """
    _check_known("provider", name, [*stores.settings.providers, *stores.roster.providers()])


def check_instance(stores: Stores, name: str) -> None:
    """Make sure that an instance is configured, registered by workers, or a copy.

    Raises:
        ConfigError: it is unknown.
    """
    names = [*stores.settings.providers, *stores.roster.instances(), *stores.instances.all()]
    _check_known("provider instance", name, names)


def check_configured(settings: Settings, name: str) -> None:
    """Make sure that the settings name an instance, without asking Redis.

    Raises:
        ConfigError: they do not.
    """
    _check_known("provider instance", name, [*settings.providers, *settings.provider])


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"no {what} {name!r}; there are: {', '.join(names) or 'none'}{hint}")


OPERATORS = Scope(agent="memorybus", user="operators")
"""The scope of these events, which belong to no agent and no person."""

SESSION = "operators"  # the session of all these events

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
