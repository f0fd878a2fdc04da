"""Bundles the stores that commands read and change, with one connection."""

from collections.abc import Iterable
from typing import Self

from memorybus.config.settings import Settings
from memorybus.history.history import History
from memorybus.recall.health import RecallHealth
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Homes
from memorybus.registry.instances import ChangeLock, Instance, Instances, RetryRequests
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.rebuild_lock import RebuildCommand, running_rebuilds
from memorybus.registry.roster import Roster


class Stores:
    """The stores for one command. Belongs to one thread; a ``with`` block closes them.

    Args:
        lock: the provider's lock, if the command takes it; `instances` then changes nothing unless
            the command still has the lock.

    Attributes:
        instances: the copies, the live instances and the paused ones.
        lanes: what Redis holds of the instances' lanes.
        homes: where the state of local instances lies.
        roster: what workers registered, and which workers are alive.
        retry_requests: what operators ask of running workers.
        history: archive and log, from which copies are filled.
    """

    def __init__(self, settings: Settings, lock: ChangeLock | None = None) -> None:
        self._redis = connect_redis(settings)
        keys = self._keys = Keys(settings.namespace)
        self.settings = settings
        self.instances = Instances(self._redis, keys, lock)
        self.lanes = LaneKeys(self._redis, settings)
        self.homes = Homes(self._redis, keys)
        self.roster = Roster(self._redis, keys)
        self.retry_requests = RetryRequests(self._redis, keys)
        self.recall_health = RecallHealth(self._redis, keys)
        self.history = History.from_settings(self._redis, settings)

    def check_partitions(self) -> None:
        """Make sure that the log has the partition count of the settings.

        Raises:
            WrongPartitionCount: it was created with another count.
        """
        self.history.log.check_partitions()

    def working_commands(self, providers: Iterable[str]) -> dict[str, RebuildCommand]:
        """Return the live commands that work on instances of these providers, by provider."""
        return running_rebuilds(self._redis, self._keys, providers)

    def add_instance(self, instance: Instance) -> None:
        """Record a new instance; workers serve it within a heartbeat.

        Raises:
            ConfigError: there is an instance of that name.
        """
        self.lanes.note_new_lanes(instance.name)
        self.instances.add(instance)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._redis.close()
