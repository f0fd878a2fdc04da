"""A worker among the others: it shows that it lives, learns who else does, and shares the lanes."""

import logging
import os
import socket
from collections.abc import Mapping, Sequence

from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.homes import Home, Homes, here
from memorybus.keys import Keys
from memorybus.masking import masked
from memorybus.roster import BEAT, ProviderInfo, Roster, WorkerInfo
from memorybus.settings import Settings
from memorybus.tools import Declared
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.balance import Balance
from memorybus_workers.host import ProviderHost
from memorybus_workers.leases import Leases

_log = logging.getLogger("memorybus")

_REGISTER_EVERY = 10

_PATIENCE = 10
"""Beats for which a home that Redis lost is left to the worker that has the state."""

_PER_LANE = 0.0005
"""Seconds between looks for each lane there is, so that a look at very many costs no more."""


class Presence:
    """Heartbeats, homes and the balance of lanes of one worker. Belongs to one thread.

    Args:
        settings: see `Settings`.
        clock: time.
        worker: our id.
        served: the instances we serve.
        declared: the tools of those that have some.
        jobs: how many recall processes we run for each.
        redis: the log's Redis.
        leases: what we own.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        worker: str,
        served: Mapping[str, ProviderInfo],
        declared: Mapping[str, Declared],
        jobs: int,
        redis: Redis,
        leases: Leases,
    ) -> None:
        """Show nothing yet."""
        self._settings = settings
        self._clock = clock
        self._worker = worker
        self._served = served
        self._declared = declared
        self._jobs = jobs
        self._redis = redis
        self._leases = leases
        keys = Keys(settings.namespace)
        self._roster = Roster(redis, keys)
        self._homes = Homes(redis, keys)
        self._local = [name for name, info in served.items() if info.placement == "local"]
        self._here = here(settings) if self._local else None
        self._elsewhere: dict[str, Home] = {}
        self._homeless: dict[str, int] = {}
        self._patient: set[str] = set()
        self._balance = Balance(settings, clock, worker, served)
        self._alive: Sequence[WorkerInfo] = ()
        self._beats = 0
        self._beat_at = self._look_at = float("-inf")

    def register(self) -> None:
        """Make our provider instances known, and find out which have their home here.

        Raises:
            LogUnavailable: Redis is away.
            ForeignKey: a key is not ours.
        """
        self._roster.register(self._served, self._declared)
        if self._here is not None:
            for name in self._local:
                self._homes.claim(name, self._here)
        self._find_homes()

    def at_home(self) -> list[str]:
        """Return the providers that this worker can serve: those whose home is not elsewhere."""
        return [name for name in self._served if name not in self._elsewhere]

    def look(self, hosts: Sequence[ProviderHost]) -> None:
        """Beat if it is time, and tell the hosts which lanes they shall have.

        Raises:
            LogUnavailable: Redis is away.
            ForeignKey: a key is not ours.
            redis.RedisError: Redis is away.
        """
        ready = [host.name for host in hosts if host.serving and host.name in self.at_home()]
        if self._clock.monotonic() >= self._beat_at:
            self._beat_at = self._clock.monotonic() + BEAT
            failing = {host.name: masked(host.failing) for host in hosts if host.failing}
            self._beat(ready, failing)
        if self._clock.monotonic() < self._look_at:
            return
        lanes = self._settings.partitions * len(ready)
        self._look_at = self._clock.monotonic() + lanes * _PER_LANE
        wanted = self._balance.look(self._redis, self._alive, ready)
        for host in hosts:
            host.want(wanted.get(host.name, frozenset()))

    def _beat(self, ready: Sequence[str], failing: dict[str, str]) -> None:
        info = WorkerInfo(
            id=self._worker,
            host=socket.gethostname(),
            pid=os.getpid(),
            lanes=self._leases.count(),
            jobs=self._jobs,
            providers=tuple(self.at_home()),
            heartbeat_at=0,
            capacity=self._settings.capacity,
            ready=tuple(ready),
            failing=failing,
        )
        self._alive = self._roster.beat(info, self._balance.silence)
        self._beats += 1
        if self._beats % _REGISTER_EVERY == 0:
            self._roster.register(self._served, self._declared)
        self._find_homes()

    def _find_homes(self) -> None:
        if self._here is None:
            return
        found = self._homes.elsewhere(self._claimable(), self._here)
        for name in found.keys() - self._elsewhere.keys():
            home = found[name]
            _log.warning(
                "provider %s has its home on %s (%s): this worker does not serve it; to bring it "
                "here, see `memorybus provider move %s`",
                name,
                home.host,
                home.path,
                name,
            )
        self._elsewhere = {name: self._elsewhere[name] for name in self._patient} | found

    def _claimable(self) -> list[str]:
        """Return the local providers; without those of others whose home was lost a moment ago.

        If Redis lost the homes, who holds the state shall claim it before anybody else does.
        """
        known = self._homes.all() if self._elsewhere else {}
        lost = [name for name in self._elsewhere if name not in known]
        self._homeless = {name: self._homeless.get(name, 0) + 1 for name in lost}
        self._patient = {name for name, beats in self._homeless.items() if beats <= _PATIENCE}
        return [name for name in self._local if name not in self._patient]

    def leave(self) -> None:
        """Say that this worker ends; without Redis, its silence says so."""
        try:
            self._roster.leave(self._worker)
        except (MemoryBusError, RedisError, OSError) as error:
            _log.debug("leaving: %s", error)
