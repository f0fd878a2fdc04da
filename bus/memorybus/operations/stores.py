"""The stores that commands on provider instances read and change, over one connection."""

from collections.abc import Iterable, Mapping
from typing import Self

from memorybus.config.settings import Settings
from memorybus.history.history import History
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Homes
from memorybus.registry.instances import ChangeLock, Instance, Instances
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.rebuild_lock import RebuildCommand, running_rebuilds
from memorybus.registry.roster import Roster
from memorybus.registry.steering import Steering


class Stores:
    """All of them, for one command. Belongs to one thread; a ``with`` block closes it.

    Args:
        settings: where the bus is.
        lock: without which `instances` changes nothing, for commands that take one.

    Attributes:
        settings: where the bus is.
        instances: the copies, which instance serves, and which are held.
        lanes: what Redis holds of their lanes.
        homes: where the state of local ones lies.
        roster: what workers registered, and who lives.
        steering: what operators want of those at work.
        history: what they are filled from.
    """

    def __init__(self, settings: Settings, lock: ChangeLock | None = None) -> None:
        """Connect at the first command."""
        self._redis = connect_redis(settings)
        keys = self._keys = Keys(settings.namespace)
        self.settings = settings
        self.instances = Instances(self._redis, keys, lock)
        self.lanes = LaneKeys(self._redis, settings)
        self.homes = Homes(self._redis, keys)
        self.roster = Roster(self._redis, keys)
        self.steering = Steering(self._redis, keys)
        self.history = History.from_settings(self._redis, settings)

    def check(self) -> None:
        """Make sure that the log is the one the settings mean.

        Raises:
            WrongPartitionCount: it was born with another count.
            LogUnavailable: Redis is away.
        """
        self.history.log.check_partitions()

    def working(self, providers: Iterable[str]) -> dict[str, RebuildCommand]:
        """Return who works on the instances of these providers now: a command that still lives."""
        return running_rebuilds(self._redis, self._keys, providers)

    def make(self, instance: Instance) -> None:
        """Make a new instance known; workers serve it within a heartbeat.

        Raises:
            ConfigError: there is one of that name.
        """
        self.lanes.note_new_lanes(instance.name)
        self.instances.add(instance)

    def behind(self, instances: Iterable[str], heads: Mapping[int, int]) -> dict[str, int]:
        """Return how many events each instance lacks that lie before some numbers, if any."""
        lacks = {
            name: sum(max(0, heads[p] - lane.n) for p, lane in enumerate(self.lanes.states(name)))
            for name in instances
        }
        return {name: left for name, left in lacks.items() if left}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._redis.close()
