"""A worker among the others: it writes its heartbeat, sees theirs, and shares the lanes."""

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes, local_home
from memorybus.registry.roster import Roster, WorkerInfo
from memorybus.registry.work import WorkCounter
from memorybus.spool.note import SpoolStats
from memorybus.text.redact import one_line
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.hosting.hosts import Hosts
from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.lanes.context import Role
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.membership.balance import Balance
from memorybus_workers.membership.heartbeats import Heartbeats
from memorybus_workers.membership.rates import Rates

_log = logging.getLogger("memorybus")

_LOOK = 0.5
_SOON = 0.1
"""Seconds between two looks at who owns what; the second while a command waits for us."""

_LOOK_ALONE = 5.0
"""Seconds between looks at the leases while nobody shares the lanes with us."""

_REGISTER_EVERY = 10

_PATIENCE = 10
"""Beats for which a home that Redis lost is left to the worker that has the state."""

_FORGOTTEN = 60.0
"""Seconds of silence after which a worker's heartbeat is removed."""

_PER_LANE = 0.0005
"""Seconds between looks for each lane there is, so that a look at very many costs no more."""


class Presence:
    """Heartbeats, homes and the balance of lanes of one worker. Belongs to one thread.

    Attributes:
        alive: the workers that were heard of lately.
        given_up: providers that we serve no more, since their calls hang.
        spool: what this host's spools hold, for the heartbeat; None before the first look.

    Args:
        settings: see `Settings`.
        clock: time.
        worker: our id.
        served: the instances we serve.
        jobs: how many recall processes we run for each.
        redis: the log's Redis.
        leases: what we own.
        work: counts what is done.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        worker: str,
        served: ServedInstances,
        jobs: int,
        redis: Redis,
        leases: Leases,
        work: WorkCounter,
    ) -> None:
        """Show nothing yet."""
        self._settings = settings
        self._clock = clock
        self._worker = worker
        self._served = served
        self._jobs = jobs
        self._redis = redis
        self._leases = leases
        self._work = work
        self._rates = Rates()
        keys = Keys(settings.namespace)
        self._roster = Roster(redis, keys)
        self._homes = Homes(redis, keys)
        self._here: Home | None = None
        self._registered: set[str] = set()
        self._elsewhere: dict[str, Home] = {}
        self._homeless: dict[str, int] = {}
        self._patient: set[str] = set()
        self._balance = Balance(settings, clock, worker, served, leases)
        self._heartbeats = Heartbeats(clock, settings.heartbeat)
        self.alive: Sequence[WorkerInfo] = ()
        self.given_up: set[str] = set()
        self.spool: SpoolStats | None = None
        self._beats = 0
        self._shown: frozenset[str] = frozenset()
        self._beat_at = self._look_at = self._settled_until = float("-inf")
        self._settled: tuple[frozenset[str], tuple[str, ...]] | None = None
        self._shares: Mapping[str, frozenset[int]] = {}

    def register(self) -> None:
        """Make our provider instances known, and find out which have their home here.

        Raises:
            LogUnavailable: Redis is away.
            ForeignKey: a key is not ours.
        """
        self._served.refresh()
        self._roster.register(self._served.infos, self._served.tools)
        self._registered = set(self._served.infos)
        if self._local_instances:
            self._here = local_home(self._settings)
            for name in self._local_instances:
                self._homes.claim(name, self._here)
        self._find_homes()

    @property
    def _local_instances(self) -> list[str]:
        """The instances whose state lies on one host."""
        return [name for name, info in self._served.infos.items() if info.placement == "local"]

    def instances_at_home(self) -> list[str]:
        """Return the instances that this worker can serve: those whose home is not elsewhere."""
        here = [name for name in self._served.infos if name not in self._elsewhere]
        return [name for name in here if self._served.provider_of(name) not in self.given_up]

    def recalled_instances(self) -> list[str]:
        """Return the instances at home that recalls ask by name, which copies are not."""
        return [name for name in self.instances_at_home() if not self._served.is_copy(name)]

    def roles(self) -> dict[str, Role]:
        """Return how each of them is run now; what has nothing to do any more is left out."""
        return {
            name: self._served.roles[name]
            for name in self.instances_at_home()
            if name in self._served.roles
        }

    @property
    def pause(self) -> float:
        """Seconds until the next look: less while somebody waits for what we do.

        Two looks to a heartbeat, so that one that fails leaves the lanes theirs.
        """
        return min(self._settings.heartbeat / 2, _SOON if self._served.hurried else _LOOK)

    def update(self, hosts: Hosts) -> None:
        """Write a heartbeat if it is time, and tell the hosts which lanes they are to have.

        Raises:
            LogUnavailable: Redis is away.
            ForeignKey: a key is not ours.
            redis.RedisError: Redis is away.
        """
        home = self.instances_at_home()
        ready = [host.name for host in hosts.all if host.serving and host.name in home]
        # Beat at once when an instance becomes ready: others assign it lanes once they know.
        if self._clock.monotonic() >= self._beat_at or not self._shown.issuperset(ready):
            self._beat_at = self._clock.monotonic() + self._settings.heartbeat
            self._shown = frozenset(ready)  # also if the beat fails: a next one is not due sooner
            self._beat(ready, hosts)
            hosts.request_redo(self._served.redo)
            hosts.retry_now(self._served.retries)
            self._served.retries.clear()
        elif self._served.hurried:
            self._served.refresh()
        if self._clock.monotonic() < self._look_at:
            return
        ready = [name for name in ready if name in self._served.infos]  # the beat may have shown
        wanted = self._wanted_lanes(ready)
        for host in hosts.all:
            current = hosts.is_current(host.name, self._served.roles.get(host.name))
            at_rest = host.name in self._served.paused or not current
            host.assign_lanes(frozenset() if at_rest else wanted.get(host.name, frozenset()))

    def _wanted_lanes(self, ready: Sequence[str]) -> Mapping[str, frozenset[int]]:
        """Return the lanes that we shall have, by provider.

        While we are alone and own them all, nothing moves until a beat shows another worker, or
        another of our instances is ready: then the leases are looked at seldom.
        """
        now = self._clock.monotonic()
        lanes = self._settings.partitions * len(ready)
        who = (frozenset(one.id for one in self.alive), tuple(ready))
        if who == self._settled and now < self._settled_until:
            return self._shares
        self._look_at = now + lanes * _PER_LANE
        self._shares = self._balance.compute_shares(self._redis, self.alive, ready)
        shared = sum(len(partitions) for partitions in self._shares.values())
        alone = len(self.alive) == 1 and shared == lanes == self._leases.count()
        self._settled = who if alone else None
        self._settled_until = now + _LOOK_ALONE
        return self._shares

    def _beat(self, ready: Sequence[str], hosts: Hosts) -> None:
        self._served.refresh()
        secrets = self._settings.secrets
        failing = {host.name: one_line(host.failing, secrets) for host in hosts.all if host.failing}
        reports = {
            host.name: one_line(text, secrets) for host in hosts.all if (text := host.report)
        }
        info = WorkerInfo(
            id=self._worker,
            host=socket.gethostname(),
            pid=os.getpid(),
            lanes=self._leases.count(),
            jobs=self._jobs,
            # What is about to end counts as served: nobody may clear it away yet.
            providers=tuple(dict.fromkeys([*self.instances_at_home(), *sorted(hosts.names)])),
            heartbeat_at=0,
            capacity=self._settings.capacity,
            ready=tuple(ready),
            failing=failing | dict(self._served.failing),
            reports=reports,
            swaps=True,
            beat=self._settings.heartbeat,
            version=version("memorybus"),
            rates=self._rates.note(self._clock.monotonic(), self._work.totals()),
            spool=self.spool,
        )
        self._note_heartbeats(self._roster.beat(info))
        self._beats += 1
        if self._beats % _REGISTER_EVERY == 0 or self._served.infos.keys() - self._registered:
            self._roster.register(self._served.infos, self._served.tools)
            self._registered = set(self._served.infos)
        self._find_homes()

    def _note_heartbeats(self, workers: Sequence[WorkerInfo]) -> None:
        (now_ms,) = (one.heartbeat_at for one in workers if one.id == self._worker)
        self._heartbeats.note(workers, now_ms)
        self._roster.leave(*(one.id for one in self._heartbeats.silent(workers, _FORGOTTEN)))
        silent = self._heartbeats.silent(workers, self._balance.silence)
        self.alive = [one for one in workers if one not in silent]

    def _find_homes(self) -> None:
        if self._here is None and self._local_instances:
            self._here = local_home(self._settings)
        if self._here is None:
            return
        found = self._homes.find_elsewhere(self._claimable(), self._here)
        for name in found.keys() - self._elsewhere.keys():
            home = found[name]
            _log.warning(
                "provider %s has its home on %s (%s): this worker does not serve it; to bring it "
                "here, see `memorybus provider move %s`",
                name,
                home.host,
                home.path,
                name,
                extra={"provider": name},
            )
        self._elsewhere = {name: self._elsewhere[name] for name in self._patient} | found

    def _claimable(self) -> list[str]:
        """Return the local providers; without those of others whose home was lost a moment ago.

        If Redis lost the homes, the worker that has the state is to claim it before any other.
        """
        known = self._homes.all() if self._elsewhere else {}
        lost = [name for name in self._elsewhere if name not in known]
        self._homeless = {name: self._homeless.get(name, 0) + 1 for name in lost}
        self._patient = {name for name, beats in self._homeless.items() if beats <= _PATIENCE}
        return [name for name in self._local_instances if name not in self._patient]

    def leave(self) -> None:
        """Say that this worker ends; without Redis, its silence says so."""
        try:
            self._roster.leave(self._worker)
        except (MemoryBusError, RedisError, OSError) as error:
            _log.debug("leaving: %s", error)
