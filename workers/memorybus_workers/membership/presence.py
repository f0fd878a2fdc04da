"""Writes a worker's heartbeat, reads those of the others, and shares out the lanes."""

import logging
import os
import socket
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

import msgspec
from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.receipt import SpoolStats
from memorybus.redis.keys import Keys
from memorybus.registry.roster import GONE_SECONDS, Roster, WorkerInfo
from memorybus.text.redact import one_line
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.hosting.hosts import Hosts
from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.lanes.context import Role, WorkerContext
from memorybus_workers.membership.balance import Balance
from memorybus_workers.membership.home_claims import HomeClaims

_RATE_SECONDS = 10.0  # seconds over which a rate is taken: more than a pause between batches


class Rates:
    """The rates at which totals grow, from their values at different times."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Mapping[str, int]]] = deque()

    def note(self, now: float, totals: Mapping[str, int]) -> dict[str, float]:
        self._seen.append((now, dict(totals)))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        if now <= since:
            return {}
        return {
            name: round((total - before.get(name, 0)) / (now - since), 3)
            for name, total in totals.items()
        }


class _Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat, and the time when it was written, by our own clock (monotonic)."""

    beat: int
    at: float


class Heartbeats:
    """The heartbeats that one worker has seen. Belongs to one thread."""

    def __init__(self, clock: Clock, beat: float) -> None:
        self._clock = clock
        self._beat = beat
        self._known: dict[str, _Heartbeat] = {}

    def note(self, workers: Iterable[WorkerInfo], now_ms: int) -> None:
        self._known = {worker.id: self._heartbeat(worker, now_ms) for worker in workers}

    def _heartbeat(self, worker: WorkerInfo, now_ms: int) -> _Heartbeat:
        last = self._known.get(worker.id)
        if last is not None and last.beat == worker.heartbeat_at:
            return last
        age = abs(now_ms - worker.heartbeat_at) / 1_000
        if last is not None:
            age = min(age, self._beat)  # it has changed since the last call
        return _Heartbeat(worker.heartbeat_at, self._clock.monotonic() - age)

    def silent(self, workers: Sequence[WorkerInfo], seconds: float) -> list[WorkerInfo]:
        now = self._clock.monotonic()
        return [worker for worker in workers if now - self._known[worker.id].at > seconds]


_log = logging.getLogger("memorybus")
_LOOK_SECONDS = 0.5
_HURRIED_LOOK_SECONDS = 0.1
"""Seconds between two looks at the leases; the second while a command waits for this worker."""

_LONE_LOOK_SECONDS = 5.0  # seconds between looks at the leases while this worker is the only one
_BEATS_PER_REGISTRATION = 10
_LOOK_SECONDS_PER_LANE = 0.0005
"""Seconds for each lane that a look waits at least, so that many lanes are read less often."""


class Presence:
    """The heartbeat of one worker, and its share of the lanes. Belongs to one thread."""

    def __init__(
        self, context: WorkerContext, worker: str, served: ServedInstances, jobs: int, redis: Redis
    ) -> None:
        self._settings = settings = context.settings
        self._clock = clock = context.clock
        self._leases = context.leases
        self._work = context.work
        self._worker = worker
        self._served = served
        self._jobs = jobs
        self._redis = redis
        self._version = version("memorybus")  # once: an upgrade changes the disk, not what runs
        self._rates = Rates()
        self._roster = Roster(redis, Keys(settings.namespace))
        self._registered: set[str] = set()
        self._homes = HomeClaims(settings, redis, served)
        self._balance = Balance(settings, clock, worker, served, self._leases)
        self._heartbeats = Heartbeats(clock, settings.heartbeat)
        self.alive: Sequence[WorkerInfo] = ()  # the workers whose heartbeats are fresh
        # the providers that this worker no longer serves, because their calls hang
        self.given_up: set[str] = set()
        self._spool: SpoolStats | None = None
        self._beats = self._started_at = 0
        self._shown: frozenset[str] = frozenset()
        self._beat_at = self._look_at = self._settled_until = float("-inf")
        self._settled: tuple[frozenset[str], tuple[str, ...]] | None = None
        self._shares: Mapping[str, frozenset[int]] = {}

    def register(self) -> None:
        """Register this worker's provider instances, and find out which have their home here."""
        self._served.refresh()
        self._roster.register(self._served.infos, self._served.tools)
        self._registered = set(self._served.infos)
        self._homes.claim()

    def instances_at_home(self) -> list[str]:
        """Return the instances that this worker can serve: those whose home is not elsewhere."""
        here = [name for name in self._served.infos if not self._homes.is_elsewhere(name)]
        return [name for name in here if self._served.provider_of(name) not in self.given_up]

    def recalled_instances(self) -> list[str]:
        """Return the instances at home that recalls ask by name; copies are not among them."""
        return [name for name in self.instances_at_home() if not self._served.is_copy(name)]

    def roles(self) -> dict[str, Role]:
        return {
            name: self._served.roles[name]
            for name in self.instances_at_home()
            if name in self._served.roles
        }

    def give_up(self, provider: str) -> None:
        self.given_up.add(provider)

    def note_spools(self, stats: SpoolStats) -> None:
        """Note what this host's spools hold, for the next heartbeat. Any thread may call this."""
        self._spool = stats

    @property
    def pause(self) -> float:
        """Seconds until the next look: fewer while a command waits for this worker.

        There are two looks for each heartbeat, so that one failed look does not cost the lanes.
        """
        return min(
            self._settings.heartbeat / 2,
            _HURRIED_LOOK_SECONDS if self._served.hurried else _LOOK_SECONDS,
        )

    def update(self, hosts: Hosts) -> None:
        home = self.instances_at_home()
        ready = [host.name for host in hosts.all if host.serving and host.name in home]
        # Beat at once when an instance becomes ready: others assign it lanes once they know.
        if self._clock.monotonic() >= self._beat_at or not self._shown.issuperset(ready):
            self._beat_at = self._clock.monotonic() + self._settings.heartbeat
            self._shown = frozenset(ready)  # even if the beat fails: the next one is not due sooner
            self._beat(ready, hosts)
            hosts.request_redo(self._served.redo)
            hosts.retry_now(self._served.retries)
            self._served.retries.clear()
        elif self._served.hurried:
            self._served.refresh()
        if self._clock.monotonic() < self._look_at:
            return
        ready = [name for name in ready if name in self._served.infos]  # a beat may change this
        wanted = self._wanted_lanes(ready)
        for host in hosts.all:
            current = hosts.is_current(host.name, self._served.roles.get(host.name))
            at_rest = host.name in self._served.paused or not current
            host.assign_lanes(frozenset() if at_rest else wanted.get(host.name, frozenset()))

    def _wanted_lanes(self, ready: Sequence[str]) -> Mapping[str, frozenset[int]]:
        """Return the lanes that this worker is to have, by provider.

        While this worker is alone and owns them all, nothing changes until another worker appears
        or another instance is ready. So the leases are read seldom.
        """
        now = self._clock.monotonic()
        lanes = self._settings.partitions * len(ready)
        who = (frozenset(worker.id for worker in self.alive), tuple(ready))
        if who == self._settled and now < self._settled_until:
            return self._shares
        self._look_at = now + lanes * _LOOK_SECONDS_PER_LANE
        self._shares = self._balance.compute_shares(self._redis, self.alive, ready)
        shared = sum(len(partitions) for partitions in self._shares.values())
        alone = len(self.alive) == 1 and shared == lanes == self._leases.count()
        self._settled = who if alone else None
        self._settled_until = now + _LONE_LOOK_SECONDS
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
            # An instance that is about to end counts as served: nobody may remove it yet.
            providers=tuple(dict.fromkeys([*self.instances_at_home(), *sorted(hosts.names)])),
            heartbeat_at=0,
            capacity=self._settings.capacity,
            ready=tuple(ready),
            failing=failing | dict(self._served.failing),
            reports=reports,
            beat=self._settings.heartbeat,
            version=self._version,
            rates=self._rates.note(self._clock.monotonic(), self._work.totals()),
            spool=self._spool,
            started_at=self._started_at,
            failing_for={host.name: host.failing_for for host in hosts.all if host.failing},
        )
        self._note_heartbeats(self._roster.beat(info))
        self._beats += 1
        if (
            self._beats % _BEATS_PER_REGISTRATION == 0
            or self._served.infos.keys() - self._registered
        ):
            self._roster.register(self._served.infos, self._served.tools)
            self._registered = set(self._served.infos)
        self._homes.look()

    def _note_heartbeats(self, workers: Sequence[WorkerInfo]) -> None:
        (now_ms,) = (worker.heartbeat_at for worker in workers if worker.id == self._worker)
        self._started_at = self._started_at or now_ms
        self._heartbeats.note(workers, now_ms)
        self._roster.leave(
            *(worker.id for worker in self._heartbeats.silent(workers, GONE_SECONDS))
        )
        silent = self._heartbeats.silent(workers, self._balance.silence)
        self.alive = [worker for worker in workers if worker not in silent]

    def leave(self) -> None:
        """Tell the others that this worker ends; if Redis is away, its silence tells them."""
        try:
            self._roster.leave(self._worker)
        except (MemoryBusError, RedisError, OSError) as error:
            _log.debug("leaving: %s", error)
