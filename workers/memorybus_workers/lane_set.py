"""The lanes that one provider instance owns, run one after another (design, part 5)."""

import contextlib
import logging
import random
import threading

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ForeignKey, LeaseLost, LogError
from memorybus.links import connect_redis, translated
from memorybus.log import EventLog
from memorybus.scripts import Acquired
from memorybus.settings import Settings
from memorybus.testing import CrashPoint
from memorybus_providers.base import MemoryProvider
from redis.exceptions import RedisError

from memorybus_workers.applier import applier_of
from memorybus_workers.calls import Calls
from memorybus_workers.lane import Lane
from memorybus_workers.leases import Lease, Leases
from memorybus_workers.place import Later

_log = logging.getLogger("memorybus")

LOOK_AROUND = 0.5
"""Seconds after which lanes are looked at even without news, and free ones are tried for."""


class Surroundings(msgspec.Struct, frozen=True):
    """What every thread of a worker shares."""

    settings: Settings
    clock: Clock
    rng: random.Random
    leases: Leases
    crash: CrashPoint
    entries_read: bool


class LaneSet:
    """Acquires, runs and gives up lanes. Belongs to the provider's thread.

    Attributes:
        unfinished: partitions known to have more.
    """

    def __init__(
        self,
        name: str,
        provider: MemoryProvider,
        around: Surroundings,
        calls: Calls,
        stop: threading.Event,
    ) -> None:
        """Own nothing yet."""
        self.unfinished: set[int] = set()
        self._name = name
        self._around = around
        self._settings = around.settings
        self._stop = stop
        self._lanes: dict[int, Lane] = {}
        self._foreign: set[int] = set()
        self._later: dict[int, float] = {}
        self._redis = connect_redis(around.settings, single=True)
        self._log = EventLog(self._redis, around.settings)
        self._applier = applier_of(provider, around.settings, calls)
        self._tried_at = float("-inf")

    def leases(self) -> list[Lease]:
        """Return what is owned now."""
        return [lane.lease for lane in list(self._lanes.values())]

    def look_at_all(self) -> None:
        """Look at every lane in the next step."""
        self.unfinished.update(self._lanes)

    def acquire(self) -> None:
        """Try for the lanes that are free, now and then.

        Raises:
            LogUnavailable: Redis is away.
            ProviderError: the provider's store cannot be used.
        """
        now = self._around.clock.monotonic()
        missing = [p for p in range(self._settings.partitions) if p not in self._lanes]
        if not missing or now < self._tried_at + LOOK_AROUND:
            return
        for partition in missing:
            if not self._stop.is_set():
                self._acquire_one(partition)
        self._tried_at = now

    def _acquire_one(self, partition: int) -> None:
        try:
            floor = self._applier.floor(partition)
            taken = self._around.leases.acquire(self._redis, self._name, partition, floor)
            if taken is not None:
                self._begin(partition, *taken)
        except (RedisError, OSError) as error:
            self._raise_unless_foreign(partition, translated(error, self._name))
        except ForeignKey as error:
            self._raise_unless_foreign(partition, error)
        except LeaseLost as lost:
            _log.info("%s", lost)

    def _begin(self, partition: int, lease: Lease, checkpoint: Acquired) -> None:
        try:
            self._lanes[partition] = self._lane(partition, lease, checkpoint)
        except BaseException:
            self._give_up(lease)
            raise
        self.unfinished.add(partition)
        self._foreign.discard(partition)

    def _lane(self, partition: int, lease: Lease, checkpoint: Acquired) -> Lane:
        return Lane(
            self._name,
            partition,
            redis=self._redis,
            log=self._log,
            leases=self._around.leases,
            lease=lease,
            checkpoint=checkpoint,
            applier=self._applier,
            batch=self._settings.batch,
            entries_read=self._around.entries_read,
            crash=self._around.crash,
        )

    def _give_up(self, lease: Lease) -> None:
        with contextlib.suppress(RedisError, OSError):  # without Redis it expires
            self._around.leases.release(self._redis, [lease])

    def _raise_unless_foreign(self, partition: int, error: LogError) -> None:
        """One partition's key is somebody else's: the other lanes go on, and it is said once."""
        if not isinstance(error, ForeignKey):
            raise error
        if partition not in self._foreign:
            _log.error("provider %s, partition %d: %s", self._name, partition, error)
        self._foreign.add(partition)

    def step(self, news: set[int]) -> bool:
        """Run one batch of every lane that may have something; return whether any ran.

        Raises:
            Unavailable: the backend is down.
            LogUnavailable: Redis is away.
        """
        now = self._around.clock.monotonic()
        self.unfinished |= {p for p, at in self._later.items() if at <= now}
        due = sorted((news | self.unfinished) & self._lanes.keys() - self._waiting(now))
        self.unfinished.clear()
        for partition in due:
            if not self._stop.is_set() and self._step_one(partition):
                self.unfinished.add(partition)
        return bool(due)

    def _waiting(self, now: float) -> set[int]:
        return {partition for partition, at in self._later.items() if at > now}

    def rest(self) -> float:
        """Return for how long there is nothing to do without news, in seconds."""
        if self.unfinished:
            return 0.0
        now = self._around.clock.monotonic()
        return min([LOOK_AROUND, *(max(0.0, at - now) for at in self._later.values())])

    def _step_one(self, partition: int) -> bool:
        lane = self._lanes[partition]
        self._later.pop(partition, None)
        try:
            return lane.step()
        except Later as later:
            self._later[partition] = self._around.clock.monotonic() + later.delay
        except LeaseLost as lost:
            _log.info("%s", lost)
            self._around.leases.drop(lane.lease)
            del self._lanes[partition]
        except (ForeignKey, RedisError) as error:
            meant = error if isinstance(error, ForeignKey) else translated(error, self._name)
            if isinstance(meant, ForeignKey):
                del self._lanes[partition]
                self._give_up(lane.lease)
            self._raise_unless_foreign(partition, meant)
        return False

    def leave(self) -> None:
        """Give up all lanes and the connection."""
        with contextlib.suppress(RedisError, OSError):  # without Redis they expire
            self._around.leases.release(self._redis, self.leases())
        self._lanes.clear()
        self._redis.close()
