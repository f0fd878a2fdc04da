"""One read model of the bus: depth, progress, workers, jobs, spools. Reading changes nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.archive.seals import Part
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.health.alarms import Alarm
from memorybus.health.checks import Continuity, Examiner
from memorybus.health.halted import halted
from memorybus.health.providers import (
    FIELDS,
    Lane,
    ProviderStatus,
    lane_of,
    number,
    waiting_since,
)
from memorybus.health.recalls import JobsStatus, read_jobs
from memorybus.health.sealing import ArchiveStatus
from memorybus.log.forecast import Disk, Memory
from memorybus.log.producers import taken
from memorybus.log.stream import EventLog
from memorybus.redis.connect import TIMEOUT, connect_jobs, connect_redis, translated
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, Instances, Sight, live_name
from memorybus.registry.roster import Roster, WorkerInfo
from memorybus.spool.files import inspect
from memorybus.spool.note import SpoolStats
from memorybus.text.display import iso


class RedisStatus(msgspec.Struct, frozen=True):
    """The log's server; `durability` is "aof:everysec", "aof:always", "snapshots" or "memory"."""

    url: str
    version: str
    durability: str


class SpoolStatus(msgspec.Struct, frozen=True):
    """What this host's spools hold that Redis has not taken; times are ISO 8601, UTC."""

    events: int
    bytes: int
    oldest_at: str | None


class WorkerStatus(msgspec.Struct, frozen=True):
    """A live worker."""

    id: str
    host: str
    pid: int
    lanes: int
    heartbeat_at: str


class Status(msgspec.Struct, frozen=True):
    """Everything `memorybus status --json` prints, in its stable shape."""

    redis: RedisStatus
    spool: SpoolStatus
    partitions: int
    providers: list[ProviderStatus]
    workers: list[WorkerStatus]
    jobs: list[JobsStatus]
    alarms: list[Alarm]
    continuity: Continuity
    memory: Memory
    disk: Disk | None
    archive: ArchiveStatus = ArchiveStatus()
    copies: list[ProviderStatus] = []


def read_status(settings: Settings) -> Status:
    """Read the whole status.

    Raises:
        LogUnavailable: Redis does not answer; `spool_status` still does.
    """
    with watching(settings) as monitor:
        return monitor.status()


@contextmanager
def watching(settings: Settings, timeout: float = TIMEOUT) -> Iterator["Monitor"]:
    """Look through one connection; what Redis raises within is told as the bus tells it.

    Args:
        settings: where the log is.
        timeout: seconds for each answer.

    Raises:
        LogUnavailable: Redis does not answer; `spool_status` still does.
    """
    redis = connect_redis(settings, timeout=timeout)
    try:
        yield Monitor(redis, settings)
    except (RedisError, OSError) as error:
        raise translated(error, redacted(settings.redis_url)) from error
    finally:
        redis.close()


class Monitor:
    """Reads the status over one connection; raises what redis-py raises, and `LogError`.

    Attributes:
        log: the log.
        roster: who serves it.
    """

    def __init__(self, redis: Redis, settings: Settings) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self.log = EventLog(redis, settings)
        self.roster = Roster(redis, self._keys)
        self._partitions = range(settings.partitions)
        self._parts: Mapping[int, Part] = {}

    def status(self) -> Status:
        """Read everything once."""
        server = self.log.server()
        self.log.check_partitions()
        names = self.names()
        sight = Instances(self._redis, self._keys).look()
        serving = {name: live_name(name, sight.live) for name in names}
        copies = [name for name, one in sight.all.items() if one.is_copy]
        lanes = self.lanes(list(dict.fromkeys([*names, *serving.values(), *copies])))
        beside = [name for name in [*names, *copies] if name not in serving.values()]
        beside = [name for name in beside if name in copies or any(one.n for one in lanes[name])]
        workers = self.roster.alive()
        health = Examiner(self._redis, self._settings).look()
        self._parts = health.parts
        return Status(
            redis=RedisStatus(
                redacted(self._settings.redis_url), server.version, server.durability
            ),
            spool=self.spool(),
            partitions=self._settings.partitions,
            providers=[
                self._serving(name, live, lanes[live], workers, sight)
                for name, live in serving.items()
            ],
            workers=[
                WorkerStatus(w.id, w.host, w.pid, w.lanes, iso(w.heartbeat_at) or "")
                for w in workers
            ],
            jobs=self._jobs(names),
            alarms=[*health.alarms, *self._halted(list(serving.values()))],
            continuity=health.continuity,
            memory=health.memory,
            disk=health.disk,
            archive=health.archive,
            copies=[self._copy(name, lanes[name], workers, sight) for name in beside],
        )

    def _halted(self, names: list[str]) -> list[Alarm]:
        return halted(self._redis, self._keys, names, self._partitions)

    def names(self) -> list[str]:
        """Return the providers that workers registered, then those that are only configured."""
        registered = list(self.roster.providers())
        return registered + [name for name in self._settings.providers if name not in registered]

    def spool(self) -> SpoolStatus:
        """Count what the spools of this host hold that Redis has not taken."""
        paths = sorted(self._settings.spool_dir.glob("*.db"))
        return _summed([inspect(path, self._taken(path.stem)) for path in paths])

    def _taken(self, producer: str) -> dict[int, int]:
        return taken(self._redis, self._keys, self._settings.partitions, producer)

    def lanes(self, names: list[str]) -> dict[str, list[Lane]]:
        """Read every lane of some providers in one round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in self._partitions:
                pipe.hget(self._keys.state(partition), "n")
                for name in names:
                    pipe.hmget(self._keys.lane(partition, name), *FIELDS)
                    pipe.exists(self._keys.lease(partition, name))
                    pipe.hlen(self._keys.parked(partition, name))
                    pipe.xlen(self._keys.dead(partition, name))
            replies = iter(pipe.execute(raise_on_error=False))
        lanes: dict[str, list[Lane]] = {name: [] for name in names}
        for _ in self._partitions:
            head = number(next(replies))
            for name in names:
                lanes[name].append(lane_of(head, *(next(replies) for _ in range(4))))
        return lanes

    def _copy(
        self, name: str, lanes: list[Lane], workers: list[WorkerInfo], sight: Sight
    ) -> ProviderStatus:
        """Tell of an instance that does not serve: it lacks only what its plan has."""
        known = sight.all.get(name, Instance(name=name, provider=name))
        ends = [known.plan.end(partition) for partition in self._partitions]
        cut = [
            lane if end is None else msgspec.structs.replace(lane, head=min(lane.head, end))
            for lane, end in zip(lanes, ends, strict=True)
        ]
        found = self._provider(name, cut, workers, sight)
        return msgspec.structs.replace(found, copy_of=known.provider)

    def _serving(
        self, name: str, live: str, lanes: list[Lane], workers: list[WorkerInfo], sight: Sight
    ) -> ProviderStatus:
        """Tell of a provider: of whichever instance serves it."""
        found = self._provider(live, lanes, workers, sight)
        return msgspec.structs.replace(found, name=name, live="" if live == name else live)

    def _provider(
        self, name: str, lanes: list[Lane], workers: list[WorkerInfo], sight: Sight
    ) -> ProviderStatus:
        hold = sight.held.get(name)
        return ProviderStatus(
            name=name,
            applied=sum(lane.n + lane.done_above - lane.not_applied for lane in lanes),
            backlog=sum(max(0, lane.head - lane.n - lane.done_above) for lane in lanes),
            oldest_unapplied_at=iso(self._oldest(lanes)),
            parked_keys=sum(lane.parked_keys for lane in lanes),
            dead_letters=sum(lane.dead for lane in lanes),
            lanes=len(lanes),
            lanes_owned=sum(lane.owned for lane in lanes),
            failing="; ".join(sorted({w.failing[name] for w in workers if name in w.failing})),
            paused=(hold.reason or "no reason was given") if hold else "",
            kept=hold is not None and hold.state == "kept",
        )

    def _oldest(self, lanes: list[Lane]) -> int | None:
        """Return when the oldest unapplied event entered the log; it may be in the archive."""
        behind = {partition: lane for partition, lane in enumerate(lanes) if lane.n < lane.head}
        with self._redis.pipeline(transaction=False) as pipe:
            for partition, lane in behind.items():
                pipe.xrange(self._keys.log(partition), f"({lane.entry}", "+", 1)
            replies = pipe.execute(raise_on_error=False)
        found = (
            waiting_since(lane, reply, self._parts.get(partition, Part()).first_at)
            for (partition, lane), reply in zip(behind.items(), replies, strict=True)
        )
        return min((at for at in found if at is not None), default=None)

    def _jobs(self, names: list[str]) -> list[JobsStatus]:
        jobs = connect_jobs(self._settings)
        try:
            return read_jobs(self._redis, jobs, self._settings, names)
        finally:
            jobs.close()


def spool_status(settings: Settings) -> SpoolStatus:
    """Count all rows of this host's spools without asking Redis: for when it is away."""
    return _summed([inspect(path, {}) for path in sorted(settings.spool_dir.glob("*.db"))])


def _summed(spools: list[SpoolStats]) -> SpoolStatus:
    times = [spool.oldest_at for spool in spools if spool.oldest_at is not None]
    return SpoolStatus(
        sum(spool.events for spool in spools),
        sum(spool.size for spool in spools),
        iso(min(times, default=None)),
    )
