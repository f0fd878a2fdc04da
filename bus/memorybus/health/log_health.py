"""Examines the log and its Redis once, for workers, `status` and `doctor`."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from redis import Redis

from memorybus.archive.seals import ArchivedPart, SealReports
from memorybus.config.settings import Settings
from memorybus.health import findings
from memorybus.health.finding import Finding
from memorybus.health.findings import ServerState
from memorybus.health.status import (
    ArchiveStatus,
    Continuity,
    Disk,
    LogFigures,
    Memory,
    available_bytes,
    build_archive_status,
    oldest_unsealed,
    read_memory,
)
from memorybus.log.continuity import Numbers, PartitionView, find_gaps
from memorybus.log.entry import Place, entry_ms
from memorybus.log.inspection import LogInspector, PartitionState
from memorybus.log.losses import Losses, lost_gap
from memorybus.redis.cluster import Shard, group_by_shard
from memorybus.redis.facts import SAFE_POLICY
from memorybus.redis.keys import ARCHIVE_LANE, Keys
from memorybus.registry.homes import Homes
from memorybus.registry.lanes import reply_number
from memorybus.text.display import iso

_MEMINFO = Path("/proc/meminfo")


class LogHealth(msgspec.Struct, frozen=True):
    """What an examination of the log found: what is wrong, and the figures that show it."""

    alarms: list[Finding]  # what is wrong
    continuity: Continuity  # whether the log is whole
    memory: Memory  # how full the memory of Redis is; in a cluster, that of the fullest shard
    disk: Disk | None  # how full the embedded server's disk is; None for any other server
    archive: ArchiveStatus = ArchiveStatus()  # the status of the archive
    # what the archive has of each partition, as archivers report it
    parts: Mapping[int, ArchivedPart] = MappingProxyType({})


class Examiner:
    """Looks at the log's health. Belongs to one thread; raises what redis-py raises."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self.states: dict[int, PartitionState] = {}  # the partitions as last seen
        self._numbers: dict[int, Numbers] = {}
        self._redis = redis
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._inspector = LogInspector(redis, settings)
        self._losses = Losses(redis, self._keys)
        self._sealed = SealReports(redis, self._keys)
        self._homes = Homes(redis, self._keys)

    def log_id(self) -> str | None:
        log_id = self._redis.hget(self._keys.meta, "log")
        return log_id.decode("ascii", "replace") if isinstance(log_id, bytes) else None

    def examine(self, settled: Mapping[int, Place] | None = None) -> LogHealth:
        self.states = self._inspector.read_partitions(settled)
        self._numbers = self._inspector.numbers(self.states)
        continuity = self._continuity()
        now = max((state.now_ms for state in self.states.values()), default=0)
        reports = self._sealed.read(now, self._settings.partitions)
        archive = build_archive_status(self.states, reports, self._home())
        infos = [_info(shard.redis) for shard in self._shards()]
        left = self._available()
        memory = max((read_memory(info, left) for info in infos), key=lambda figures: figures.share)
        disk = self._disk(infos[0])
        alarms = chain(
            self._log_alarms(continuity),
            *(findings.server_alarms(state_of(info)) for info in infos),
            findings.memory_alarms(memory, archive.obstacle),
            findings.disk_alarms(disk),
            findings.archive_alarms(archive, self._overdue_seconds(now)),
            findings.set_back_alarms(self._views(), self._keys),
        )
        return LogHealth(
            list(dict.fromkeys(alarms)), continuity, memory, disk, archive, reports.parts
        )

    def _views(self) -> dict[int, PartitionView]:
        return {partition: state.view for partition, state in self.states.items()}

    def _overdue_seconds(self, now: int) -> float | None:
        """Return the seconds by which sealing is overdue; None if all events are sealed."""
        oldest = oldest_unsealed(self.states)
        due = self._settings.seal_after + self._settings.segment_age
        return None if oldest is None else (now - oldest) / 1000 - due

    def _home(self) -> str | None:
        if self._settings.archive:
            return None
        home = self._homes.all().get(ARCHIVE_LANE)
        return f"{home.host} in {home.path}" if home else None

    def _log_alarms(self, continuity: Continuity) -> Iterator[Finding]:
        yield from findings.gap_alarms(continuity.gaps, self._keys)
        yield from findings.foreign_alarms(self._views(), self._numbers, self._keys)

    def _continuity(self) -> Continuity:
        """Return what is missing: what is on record, and what else the log shows."""
        log, recorded = self.log_id(), self._losses.all()
        names = {gap.record for gap in recorded}
        shown = [
            gap
            for partition, state in self.states.items()
            for gap in find_gaps(partition, state.view, self._numbers.get(partition))
            if lost_gap("gap", log, gap, None).record not in names
        ]
        return Continuity(log, shown + recorded)

    def _shards(self) -> list[Shard]:
        return group_by_shard(self._redis, map(self._keys.log, range(self._settings.partitions)))

    def _available(self) -> int | None:
        """Return the free memory if Redis runs on this machine (its URL is a unix socket)."""
        if self._settings.redis_url.startswith("unix:"):
            with suppress(OSError):
                return available_bytes(_MEMINFO.read_text())
        return None

    def _disk(self, info: Mapping[str, Any]) -> Disk | None:
        """Return how full the embedded server's disk is; None for a server that is not ours."""
        aof = int(info.get("aof_current_size", 0))
        if self._settings.url or not aof:
            return None
        with suppress(OSError):
            return Disk(shutil.disk_usage(self._settings.data_dir).free, aof)
        return None


def _info(redis: Redis) -> dict[str, Any]:
    sections = ("memory", "persistence", "replication")
    return {name: value for part in sections for name, value in redis.info(part).items()}


def state_of(info: Mapping[str, Any]) -> ServerState:
    """Return what INFO reports about how a server keeps its data."""
    return ServerState(
        policy=str(info.get("maxmemory_policy", SAFE_POLICY)),
        aof=bool(int(info.get("aof_enabled", 0))),
        aof_write=str(info.get("aof_last_write_status", "ok")),
        aof_rewrite=str(info.get("aof_last_bgrewrite_status", "ok")),
        snapshot=str(info.get("rdb_last_bgsave_status", "ok")),
        replica=info.get("role") == "slave",
    )


def read_figures(redis: Redis, keys: Keys, states: Mapping[int, PartitionState]) -> LogFigures:
    with redis.pipeline(transaction=False) as pipe:
        for partition in states:
            pipe.hmget(keys.state(partition), "duplicates", "conflicts")
        replies = pipe.execute(raise_on_error=False)
    pairs = [reply if isinstance(reply, list) else (None, None) for reply in replies]
    views = [state.view for state in states.values()]
    firsts = [entry_ms(view.first.entry) for view in views if view.first]
    return LogFigures(
        published=sum(view.n for view in views),
        entries=sum(view.length for view in views),
        bytes=sum(state.size for state in states.values()),
        oldest_at=iso(min(firsts, default=None)),
        duplicates=sum(reply_number(pair[0]) for pair in pairs),
        conflicts=sum(reply_number(pair[1]) for pair in pairs),
    )
