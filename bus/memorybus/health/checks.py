"""The health of the log and its Redis: one look, for workers, `status` and `doctor` alike.

What no look alone can tell (a log that was wiped and born anew) a worker's watch finds, and writes
to the losses that are read here.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.archive.seals import ArchivedPart, SealReports
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.health import alarms
from memorybus.health.alarms import Alarm, ServerState
from memorybus.health.sealing import ArchiveStatus, oldest_unsealed, status_of
from memorybus.log.continuity import Gap, Numbers, View, gaps_of
from memorybus.log.entry import Place
from memorybus.log.forecast import (
    Disk,
    Grown,
    LimitFrom,
    Load,
    Memory,
    disk_forecast,
    forecast,
    growth_of,
    shortest,
)
from memorybus.log.inspection import LogInspector, PartitionSight
from memorybus.log.losses import Loss, Losses
from memorybus.redis.cluster import Shard, by_shard
from memorybus.redis.connect import connect_redis, translated
from memorybus.redis.facts import SAFE_POLICY
from memorybus.redis.keys import ARCHIVE_LANE, Keys
from memorybus.registry.homes import Homes

_MEMINFO = Path("/proc/meminfo")


class Continuity(msgspec.Struct, frozen=True):
    """Whether the log is whole.

    Attributes:
        log: its id, given at its birth; null if it has no birth certificate.
        gaps: numbers that it lacks.
        losses: what workers saw it lose, and it no longer shows.
    """

    log: str | None
    gaps: list[Gap]
    losses: list[Loss]


class Health(msgspec.Struct, frozen=True):
    """One look: what is wrong first, then what it was judged from.

    Attributes:
        parts: what the archive has of each partition, as archivers say.
    """

    alarms: list[Alarm]
    continuity: Continuity
    memory: Memory
    disk: Disk | None
    archive: ArchiveStatus = ArchiveStatus()
    parts: Mapping[int, ArchivedPart] = MappingProxyType({})


class _Server(msgspec.Struct, frozen=True):
    """One server of the log: what INFO says, and how long its memory lasts."""

    info: dict[str, Any]
    memory: Memory


class Examiner:
    """Looks at the log's health. Belongs to one thread; raises what redis-py raises.

    Attributes:
        sights: the partitions as last seen.
    """

    def __init__(self, redis: Redis, settings: Settings) -> None:
        """Use the log's Redis."""
        self.sights: dict[int, PartitionSight] = {}
        self._numbers: dict[int, Numbers] = {}
        self._redis = redis
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._inspector = LogInspector(redis, settings)
        self._losses = Losses(redis, self._keys)
        self._sealed = SealReports(redis, self._keys)
        self._homes = Homes(redis, self._keys)

    def log_id(self) -> str | None:
        """Return the id the log was given at its birth; None if it has no certificate."""
        found = self._redis.hget(self._keys.meta, "log")
        return found.decode("ascii", "replace") if isinstance(found, bytes) else None

    def look(self, settled: Mapping[int, Place] | None = None) -> Health:
        """Look once.

        Args:
            settled: places to look before and behind (see `LogInspector.look`).
        """
        self.sights = self._inspector.look(settled)
        self._numbers = self._inspector.numbers(self.sights)
        continuity = Continuity(self.log_id(), self._gaps(), self._losses.all())
        now = max((sight.now_ms for sight in self.sights.values()), default=0)
        reports = self._sealed.read(now, self._settings.partitions)
        archive = status_of(self.sights, reports, self._home())
        servers = [self._server(shard, trimmed=archive.working) for shard in self._shards()]
        memory = shortest([server.memory for server in servers])
        disk = self._disk(servers[0].info, memory)
        found = chain(
            self._of_log(continuity),
            *(alarms.of_server(state_of(server.info)) for server in servers),
            alarms.of_memory(memory, archive.told),
            alarms.of_disk(disk),
            alarms.of_archive(archive, self._views(), self._late(now)),
        )
        return Health(list(dict.fromkeys(found)), continuity, memory, disk, archive, reports.parts)

    def _views(self) -> dict[int, View]:
        return {partition: sight.view for partition, sight in self.sights.items()}

    def _late(self, now: int) -> float | None:
        """Return by how many seconds the oldest event that is not sealed is overdue."""
        oldest = oldest_unsealed(self.sights)
        due = self._settings.seal_after + self._settings.segment_age
        return None if oldest is None else (now - oldest) / 1000 - due

    def _home(self) -> str | None:
        if self._settings.archive:
            return None
        held = self._homes.all().get(ARCHIVE_LANE)
        return f"{held.host} in {held.path}" if held else None

    def _of_log(self, continuity: Continuity) -> Iterator[Alarm]:
        yield from alarms.of_gaps(continuity.gaps)
        yield from alarms.of_losses(continuity.losses, self._keys)
        yield from alarms.of_numbering(self._views(), self._numbers, self._keys)

    def _gaps(self) -> list[Gap]:
        return [
            gap
            for partition, sight in self.sights.items()
            for gap in gaps_of(partition, sight.view, self._numbers.get(partition))
        ]

    def _shards(self) -> list[Shard]:
        """Return the servers that hold the log: one, or those of a cluster."""
        return by_shard(self._redis, map(self._keys.log, range(self._settings.partitions)))

    def _server(self, shard: Shard, *, trimmed: bool) -> _Server:
        info: dict[str, Any] = shard.redis.info("memory") | shard.redis.info("persistence")
        here = [s for p, s in self.sights.items() if self._keys.log(p) in shard.keys]
        found = load(info, here, self._available())
        return _Server(info, forecast(bounded(found, here, self._settings) if trimmed else found))

    def _available(self) -> int | None:
        """Return what memory is left, if Redis runs on this machine (a unix socket says so)."""
        if self._settings.redis_url.startswith("unix:"):
            with suppress(OSError):
                return available(_MEMINFO.read_text())
        return None

    def _disk(self, info: Mapping[str, Any], memory: Memory) -> Disk | None:
        """Return the room of the embedded server's file; another server's disk is not ours."""
        aof = int(info.get("aof_current_size", 0))
        if self._settings.url or not aof:
            return None
        with suppress(OSError):
            free = shutil.disk_usage(self._settings.data_dir).free
            return disk_forecast(free, aof, memory)
        return None


def read_health(settings: Settings) -> Health:
    """Look once.

    Raises:
        LogUnavailable: Redis does not answer.
        ForeignKey: the birth certificate, or the hash of losses, is not ours.
    """
    redis = connect_redis(settings)
    try:
        return Examiner(redis, settings).look()
    except (RedisError, OSError) as error:
        raise translated(error, redacted(settings.redis_url)) from error
    finally:
        redis.close()


def state_of(info: Mapping[str, Any]) -> ServerState:
    """Return what INFO says of how the server keeps what it was given."""
    return ServerState(
        policy=str(info.get("maxmemory_policy", SAFE_POLICY)),
        aof=bool(int(info.get("aof_enabled", 0))),
        aof_write=str(info.get("aof_last_write_status", "ok")),
        aof_rewrite=str(info.get("aof_last_bgrewrite_status", "ok")),
        snapshot=str(info.get("rdb_last_bgsave_status", "ok")),
    )


def load(info: Mapping[str, Any], sights: Iterable[PartitionSight], left: int | None) -> Load:
    """Return what the forecast is made from.

    Args:
        info: INFO's sections `memory` and `persistence`.
        sights: the partitions.
        left: bytes left on the machine, if Redis runs on ours.
    """
    seen = list(sights)
    used = int(info["used_memory"])
    limit, limit_from = limit_of(info, used, left)
    return Load(
        used=used,
        limit=limit,
        limit_from=limit_from,
        bytes_per_event=bytes_per_event(seen),
        growths=growth_of(
            [g for g in map(_grown, seen) if g], max((s.now_ms for s in seen), default=0)
        ),
    )


def limit_of(info: Mapping[str, Any], used: int, left: int | None) -> tuple[int | None, LimitFrom]:
    """Return how much memory Redis may use, and who says so."""
    if limit := int(info.get("maxmemory", 0)):
        return limit, "maxmemory"
    if left is not None:
        return used + left, "available"
    if total := int(info.get("total_system_memory", 0)):
        return total, "machine"
    return None, "unknown"


def bytes_per_event(sights: Iterable[PartitionSight]) -> float:
    """Return what an event takes: in its stream, and its id in the window of ids."""
    seen = list(sights)
    events, ids = sum(s.view.length for s in seen), sum(s.ids for s in seen)
    stream = sum(s.size for s in seen) / events if events else 0.0
    return stream + (sum(s.ids_size for s in seen) / ids if ids else 0.0)


def bounded(load: Load, sights: Sequence[PartitionSight], settings: Settings) -> Load:
    """Return a load of which the archive takes what has left the hot window."""
    events = sum(sight.view.length for sight in sights)
    log = sum(sight.size + 2 * sight.ids_size for sight in sights)
    return msgspec.structs.replace(
        load,
        kept_for=max(settings.hot_window, settings.seal_after + settings.segment_age),
        fixed=max(0, load.used - log) + _remembered(load, sights, settings),
        bytes_per_event=sum(sight.size for sight in sights) / events if events else 0.0,
    )


def _remembered(load: Load, sights: Sequence[PartitionSight], settings: Settings) -> int:
    """Return the bytes that two full windows of event ids will take at the present rate."""
    ids = sum(sight.ids for sight in sights)
    rate = max((g.events / g.seconds for g in load.growths if g.events is not None), default=0.0)
    most = min(rate * settings.dedupe_window, settings.dedupe_max_ids * len(sights))
    return round(2 * most * sum(sight.ids_size for sight in sights) / ids) if ids else 0


def available(meminfo: str) -> int | None:
    """Return the bytes that Linux says programs can still get."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _grown(sight: PartitionSight) -> Grown | None:
    """Return how a partition grew; None if it never held an event."""
    view = sight.view
    if view.first is None:
        return Grown(view.n, 0, sight.now_ms, sight.numbers) if view.n else None
    at = int(view.first.entry.partition("-")[0])
    return Grown(view.n, view.first.n, at, sight.numbers)
