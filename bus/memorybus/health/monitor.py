"""Reads the whole status of the bus, and changes nothing."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import cast

import msgspec
from redis import Redis
from rq.job import Job

from memorybus.archive.seals import ArchivedPart
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.health.findings import halted_lane_alarms
from memorybus.health.log_health import Examiner, read_figures
from memorybus.health.model_status import read_model
from memorybus.health.status import (
    HostSpool,
    JobsStatus,
    ProviderStatus,
    RedisStatus,
    SpoolStatus,
    Status,
    StatusWithLanes,
    WorkerStatus,
    waiting_since,
)
from memorybus.log.stream import EventLog, Head
from memorybus.outbox.producers import count_unsent
from memorybus.recall.health import PromptCounts, RecallHealth, RecentRecalls, read_counts
from memorybus.recall.queue import queue_name
from memorybus.receipt import SpoolStats
from memorybus.redis.connect import TIMEOUT, connect_jobs, connected
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.instances import Instance, Instances, InstancesView, live_name
from memorybus.registry.lanes import LaneKeys, LanesByInstance, LaneState, reply_number
from memorybus.registry.roster import Roster, WorkerInfo
from memorybus.registry.work import read_work
from memorybus.text.display import iso


def read_status(settings: Settings) -> Status:
    return read_with_lanes(settings).status


def read_with_lanes(settings: Settings) -> StatusWithLanes:
    """Read the whole status with its lanes; raises what `read_status` raises."""
    with open_monitor(settings) as monitor:
        return monitor.read_status()


@contextmanager
def open_monitor(settings: Settings, timeout: float = TIMEOUT) -> Iterator["Monitor"]:
    """Open a monitor; an error of Redis inside the block becomes an error of the bus."""
    with connected(settings, timeout=timeout) as redis:
        yield Monitor(redis, settings)


class Monitor:
    """Reads the status over one connection; raises what redis-py raises, and `LogError`."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis = redis
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self.log = EventLog(redis, settings)  # the log
        self.roster = Roster(redis, self._keys)  # who serves it
        self.lanes = LaneKeys(redis, settings)  # how far they are
        self._partitions = range(settings.partitions)
        self._parts: Mapping[int, ArchivedPart] = {}

    def read_status(self) -> StatusWithLanes:
        server = self.log.server()
        self.log.check_partitions()
        names, view = self.provider_names(), Instances(self._redis, self._keys).read_view()
        serving = {name: live_name(name, view.live) for name in names}
        idle = [name for name in [*names, *_copies(view)] if name not in serving.values()]
        lanes = self.lanes.read(list(dict.fromkeys([*serving.values(), *idle])))
        workers, gone = self.roster.seen()
        examiner = Examiner(self._redis, self._settings)
        health = examiner.examine()
        self._parts = health.parts
        halted = halted_lane_alarms({live: lanes[live] for live in serving.values()})
        read_spool = self.read_spool()
        status = Status(
            redis=RedisStatus(
                redacted(self._settings.redis_url),
                server.version,
                server.durability,
                server.product,
            ),
            spool=read_spool,
            partitions=self._settings.partitions,
            providers=self._serving_statuses(serving, lanes, workers, view),
            workers=[_worker_status(worker) for worker in workers],
            gone=[_worker_status(worker) for worker in gone],
            jobs=self._jobs(names),
            alarms=[*health.alarms, *halted],
            continuity=health.continuity,
            memory=health.memory,
            disk=health.disk,
            archive=health.archive,
            copies=self._idle_statuses(idle, lanes, workers, view),
            log=read_figures(self._redis, self._keys, examiner.states),
            canary_at=iso(reply_number(self._redis.get(self._keys.canary)) or None),
            spools=host_spools(workers, socket.gethostname(), read_spool),
            model=read_model(self._redis, self._keys, self._settings.model),
        )
        return StatusWithLanes(status, lanes)

    def providers_before(self, place: Head) -> list[str]:
        """Return the providers whose lane has not passed a place, but no paused or unowned ones."""
        view = Instances(self._redis, self._keys).read_view()
        serving = {name: live_name(name, view.live) for name in self.provider_names()}
        moving = {name: live for name, live in serving.items() if live not in view.pauses}
        read_lanes = self.lanes.read(list(dict.fromkeys(moving.values())))
        lanes = {name: read_lanes[live][place.partition] for name, live in moving.items()}
        owned = {name: lane for name, lane in lanes.items() if lane.owned}
        return [name for name, lane in (owned or lanes).items() if lane.n < place.n]

    def provider_names(self) -> list[str]:
        """Return the providers that workers registered, then those that are only configured."""
        registered = list(self.roster.providers())
        return registered + [name for name in self._settings.providers if name not in registered]

    def read_spool(self) -> SpoolStatus:
        """Count the events in the spools of this host that Redis has not taken."""
        return _spool_status(count_unsent(self._settings, self._redis))

    def _serving_statuses(
        self,
        serving: Mapping[str, str],
        lanes: LanesByInstance,
        workers: list[WorkerInfo],
        view: InstancesView,
    ) -> list[ProviderStatus]:
        work = read_work(self._redis, self._keys, list(serving))
        return [
            msgspec.structs.replace(
                self._provider_status(live, lanes[live], workers, view),
                name=name,
                live="" if live == name else live,
                work=work[name],
            )
            for name, live in serving.items()
        ]

    def _idle_statuses(
        self,
        idle: Sequence[str],
        lanes: LanesByInstance,
        workers: list[WorkerInfo],
        view: InstancesView,
    ) -> list[ProviderStatus]:
        copies = _copies(view)
        return [
            self._copy_status(name, lanes[name], workers, view)
            for name in idle
            if name in copies or any(lane.n for lane in lanes[name])
        ]

    def _copy_status(
        self, name: str, lanes: list[LaneState], workers: list[WorkerInfo], view: InstancesView
    ) -> ProviderStatus:
        """Return the status of an instance that serves nobody; its backlog ends with its plan."""
        instance = view.all.get(name, Instance(name=name, provider=name))
        ends = [instance.plan.end(partition) for partition in self._partitions]
        cut = [
            lane if end is None else msgspec.structs.replace(lane, head=min(lane.head, end))
            for lane, end in zip(lanes, ends, strict=True)
        ]
        provider = self._provider_status(name, cut, workers, view)
        return msgspec.structs.replace(
            provider, copy_of=instance.provider, rate=None, seconds_left=None
        )  # workers count only what they do for the instance that serves

    def _provider_status(
        self, name: str, lanes: list[LaneState], workers: list[WorkerInfo], view: InstancesView
    ) -> ProviderStatus:
        pause = view.pauses.get(name)
        backlog = sum(lane.backlog for lane in lanes)
        provider = view.all[name].provider if name in view.all else name
        rate = rate_of(provider, workers)
        fullest = max(range(len(lanes)), key=lambda partition: lanes[partition].backlog)
        return ProviderStatus(
            name=name,
            applied=sum(lane.n + lane.done_above - lane.parked - lane.discarded for lane in lanes),
            backlog=backlog,
            oldest_unapplied_at=iso(self._oldest(lanes)),
            parked_keys=sum(lane.parked_keys for lane in lanes),
            dead_letters=sum(lane.dead for lane in lanes),
            refused=sum(lane.refused for lane in lanes),
            waiting_behind=sum(lane.waiting_behind for lane in lanes),
            failing_since=iso(_failing_since(name, workers)),
            lanes=len(lanes),
            lanes_owned=sum(lane.owned for lane in lanes),
            failing="; ".join(sorted({w.failing[name] for w in workers if name in w.failing})),
            reports="; ".join(sorted({w.reports[name] for w in workers if name in w.reports})),
            paused=(pause.reason or "no reason was given") if pause else "",
            kept=pause is not None and pause.state == "kept",
            discarded=sum(lane.discarded for lane in lanes),
            rate=rate,
            seconds_left=backlog / rate if rate and backlog else None,
            busiest=lane_name(fullest) if backlog else "",
            busiest_backlog=lanes[fullest].backlog,
        )

    def _oldest(self, lanes: list[LaneState]) -> int | None:
        """Return when the oldest unapplied event entered the log; it may be in the archive."""
        behind = {partition: lane for partition, lane in enumerate(lanes) if lane.n < lane.head}
        with self._redis.pipeline(transaction=False) as pipe:
            for partition, lane in behind.items():
                pipe.xrange(self._keys.log(partition), f"({lane.entry}", "+", 1)
            replies = pipe.execute(raise_on_error=False)
        times = (
            waiting_since(lane, reply, self._parts.get(partition, ArchivedPart()).first_at)
            for (partition, lane), reply in zip(behind.items(), replies, strict=True)
        )
        return min((at for at in times if at is not None), default=None)

    def _jobs(self, names: list[str]) -> list[JobsStatus]:
        jobs = connect_jobs(self._settings)
        try:
            return read_jobs(self._redis, jobs, self._settings, names)
        finally:
            jobs.close()


def _failing_since(name: str, workers: Sequence[WorkerInfo]) -> int | None:
    return min(
        (
            worker.heartbeat_at - round(worker.failing_for[name] * 1000)
            for worker in workers
            if name in worker.failing_for
        ),
        default=None,
    )


def _copies(view: InstancesView) -> list[str]:
    return [name for name, instance in view.all.items() if instance.is_copy]


def _worker_status(info: WorkerInfo) -> WorkerStatus:
    beat = iso(info.heartbeat_at) or ""
    return WorkerStatus(info.id, info.host, info.pid, info.lanes, beat, info.version)


def rate_of(provider: str, workers: Sequence[WorkerInfo]) -> float | None:
    reported = [worker.rates for worker in workers if worker.rates is not None]
    return sum(rates.get(provider, 0.0) for rates in reported) if reported else None


def with_published_rate(before: Status, now: Status, seconds: float) -> Status:
    grown = max(0, now.log.published - before.log.published)
    return msgspec.structs.replace(now, published_rate=round(grown / seconds, 3))


def host_spools(workers: Sequence[WorkerInfo], here: str, spool: SpoolStatus) -> list[HostSpool]:
    spools = {worker.host: _spool_status(worker.spool) for worker in workers if worker.spool}
    spools[here] = spool
    return [HostSpool(host, spools[host]) for host in sorted(spools)]


def spool_status(settings: Settings) -> SpoolStatus:
    return _spool_status(count_unsent(settings))


def _spool_status(stats: SpoolStats) -> SpoolStatus:
    return SpoolStatus(stats.events, stats.size, iso(stats.oldest_at))


def read_jobs(
    redis: Redis, jobs: Redis, settings: Settings, providers: Sequence[str]
) -> list[JobsStatus]:
    """Read all queues' figures from RQ's keys, since its registries change them when they count."""
    keys = Keys(settings.namespace)
    health = RecallHealth(redis, keys).read(providers)
    prompts = read_counts(redis, keys, providers)
    with jobs.pipeline(transaction=False) as pipe:
        for queue in (queue_name(settings.namespace, name) for name in providers):
            pipe.lrange(f"rq:queue:{queue}", 0, -1)
            pipe.zcard(f"rq:wip:{queue}")
        replies = iter(pipe.execute())
    return [
        _jobs_status(
            settings.namespace,
            name,
            _enqueued_times(jobs, next(replies)),
            next(replies),
            health[name],
            prompts[name],
        )
        for name in providers
    ]


def _enqueued_times(jobs: Redis, ids: Sequence[bytes]) -> list[int]:
    """Return when each waiting job was enqueued (milliseconds); expired jobs are left out."""
    with jobs.pipeline(transaction=False) as pipe:
        for job_id in ids:
            pipe.hget(Job.key_for(job_id.decode()), "enqueued_at")
        replies = cast("list[bytes | None]", pipe.execute())
    return [_ms(at) for at in replies if at is not None]


def _ms(at: bytes) -> int:
    """Return a time that RQ wrote, in milliseconds; 0 if another program's job holds no time."""
    try:
        return round(datetime.fromisoformat(at.decode()).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _jobs_status(
    namespace: str,
    provider: str,
    asked_at: list[int],
    started: int,
    health: RecentRecalls,
    prompts: PromptCounts,
) -> JobsStatus:
    return JobsStatus(
        provider=provider,
        queue=queue_name(namespace, provider),
        queued=len(asked_at),
        started=int(started),
        failed=health.failed,
        oldest_at=iso(min(asked_at, default=None)),
        failing=health.failing,
        skipped=health.skipped,
        paused=health.paused,
        failed_at=iso(health.failed_at),
        error=health.error,
        prompts=prompts,
    )
