"""The status of the bus: the figures that `memorybus status --json` prints, and their parts."""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from memorybus.archive.seals import ArchiverReports
from memorybus.health.finding import Finding
from memorybus.health.model_status import ModelStatus
from memorybus.log.continuity import Gap
from memorybus.log.entry import entry_ms
from memorybus.log.inspection import PartitionState
from memorybus.recall.health import PromptCounts
from memorybus.registry.lanes import LanesByInstance, LaneState
from memorybus.registry.work import WorkDone
from memorybus.text.display import format_size, iso

WARN_SHARE, FULL_SHARE = 0.8, 0.95
"""The shares of a limit from which it is nearly used up, and used up."""

LimitFrom = Literal["maxmemory", "available", "machine", "unknown"]
FillLevel = Literal["ok", "warning", "critical"]

_LIMITED_BY: Mapping[LimitFrom, str] = {
    "maxmemory": "maxmemory",
    "available": "available on this machine",
    "machine": "all RAM of the Redis host",
}


class Memory(msgspec.Struct, frozen=True):
    """The memory of Redis, as `status --json` prints it."""

    used: int  # bytes that it uses
    limit: int | None  # bytes that it may use; null if nobody knows
    # Where the limit comes from. "maxmemory": its setting; "available": what it uses and what this
    # machine, where it runs, has left; "machine": all memory of its machine.
    limit_from: LimitFrom

    @property
    def share(self) -> float:
        """The share of the limit that is used; 0.0 without a limit."""
        return self.used / self.limit if self.limit else 0.0

    def __str__(self) -> str:
        if self.limit is None:
            return f"{format_size(self.used)} used, the limit is unknown"
        used, limit = format_size(self.used), format_size(self.limit)
        return f"{used} of {limit} used, {self.share:.0%} ({_LIMITED_BY[self.limit_from]})"


class Disk(msgspec.Struct, frozen=True):
    """The embedded server's disk: its free bytes, and those of the append-only file."""

    free: int
    aof: int

    @property
    def share(self) -> float:
        """The share that is used while the file is rewritten, which takes its size once more."""
        return 2 * self.aof / ((self.aof + self.free) or 1)

    def __str__(self) -> str:
        return f"{format_size(self.free)} free, the append-only file has {format_size(self.aof)}"


def fill_level(share: float) -> FillLevel:
    return "critical" if share >= FULL_SHARE else "warning" if share >= WARN_SHARE else "ok"


def read_memory(info: Mapping[str, Any], left: int | None) -> Memory:
    """Return the memory from INFO; `left` is what this machine has free, if Redis runs on it."""
    used = int(info["used_memory"])
    if limit := int(info.get("maxmemory", 0)):
        return Memory(used, limit, "maxmemory")
    if left is not None:
        return Memory(used, used + left, "available")
    if total := int(info.get("total_system_memory", 0)):
        return Memory(used, total, "machine")
    return Memory(used, None, "unknown")


def available_bytes(meminfo: str) -> int | None:
    """Return the bytes that programs can still get, from Linux's ``/proc/meminfo``."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


_NO_ARCHIVER = "no worker archives"


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of the archive, as `status --json` prints it; times are ISO 8601, UTC."""

    working: bool = False  # whether some worker archives
    # what keeps all workers from archiving; where one archives, what others found damaged; "" if
    # nothing is wrong
    error: str = _NO_ARCHIVER
    damaged: bool = False  # whether the archive's files were changed, so that a person has to act
    hindered: bool = False  # whether an error keeps all workers from archiving
    place: str | None = None  # where it lies; null if no worker has reported that
    # the host and directory of an archive that lies in a data_dir; null otherwise
    home: str | None = None
    sealed: int = 0  # how many events of the log are sealed
    unsealed: int = 0  # how many are not sealed yet
    oldest_unsealed_at: str | None = None  # when the oldest of these entered the log; null for none
    segments: int = 0  # how many files it has
    bytes: int = 0  # the size of these files

    @property
    def obstacle(self) -> str:
        """What keeps the log from being trimmed; "" if nothing."""
        return "" if self.working else self.error


def build_archive_status(
    states: Mapping[int, PartitionState], reports: ArchiverReports, home: str | None
) -> ArchiveStatus:
    views = [state.view for state in states.values()]
    return ArchiveStatus(
        working=reports.working,
        error=_error(reports, home),
        damaged=any(report.damaged for report in reports.workers.values()),
        hindered=bool(reports.error) and not reports.working,
        place=reports.place or None,
        home=home,
        sealed=sum(view.sealed for view in views),
        unsealed=sum(max(0, view.n - view.sealed) for view in views),
        oldest_unsealed_at=iso(oldest_unsealed(states)),
        segments=sum(part.segments for part in reports.parts.values()),
        bytes=sum(part.bytes for part in reports.parts.values()),
    )


def _error(reports: ArchiverReports, home: str | None) -> str:
    if reports.working or reports.error:
        return reports.error
    where = f"; it lies on {home}: a worker has to run there" if reports.workers and home else ""
    return f"{_NO_ARCHIVER}{where}"


def oldest_unsealed(states: Mapping[int, PartitionState]) -> int | None:
    """Return when the oldest unsealed event entered the log; None if all events are sealed."""
    places = [state.view.unsealed for state in states.values()]
    return min((entry_ms(place.entry) for place in places if place), default=None)


def describe_archive(status: ArchiveStatus) -> str:
    place = status.place or "no place yet"
    if not status.working:
        return f"nothing is trimmed: {status.error}"
    waiting = f"{status.unsealed:,} not yet" if status.unsealed else "none waiting"
    since = f", the oldest since {status.oldest_unsealed_at}" if status.oldest_unsealed_at else ""
    stored = f"{status.segments:,} segments of {format_size(status.bytes)} in {place}"
    damage = f"; {status.error}" if status.error else ""
    return f"{status.sealed:,} events sealed, {waiting}{since}; {stored}{damage}"


class ProviderStatus(msgspec.Struct, frozen=True):
    """A provider's lanes, summed up; times are ISO 8601, UTC."""

    name: str  # the provider, or the copy
    applied: int  # how many events were applied; parked and discarded events do not count
    backlog: int  # how many events wait
    oldest_unapplied_at: str | None  # when the oldest waiting event entered the log; null for none
    parked_keys: int  # how many order keys wait for an operator; of each, one event was refused
    # how many events these keys have: refused, and waiting behind what was refused
    dead_letters: int
    lanes: int  # how many lanes it has
    lanes_owned: int  # how many of these a live worker owns
    # The error of its calls while none succeeds; its lanes then wait, and nothing is parked. ""
    # otherwise.
    failing: str = ""
    # what the provider reports about itself, such as how much is missing; "" for nothing
    reports: str = ""
    paused: str = ""  # why an operator or a command paused its lanes; "" if they are not paused
    live: str = ""  # the copy that serves agents in its place, whose figures these are; "" for none
    # for an instance that serves nobody, the provider that it copies; "" otherwise
    copy_of: str = ""
    # whether its lanes are paused because it is kept for `memorybus rebuild --rollback`
    kept: bool = False
    discarded: int = 0  # how many events an operator discarded
    # how many events a second its workers applied over the last seconds; null if no worker reports
    # it
    rate: float | None = None
    # how long its backlog takes at that rate; null if that is unknown
    seconds_left: float | None = None
    busiest: str = ""  # its lane with the largest backlog; "" if there is no backlog
    busiest_backlog: int = 0  # how many events wait in that lane
    # what workers counted of their work for the provider; zeros for a copy
    work: WorkDone = WorkDone()
    failing_since: str | None = None  # since when these calls fail; null if they do not
    refused: int = 0  # how many events it refused for good
    waiting_behind: int = 0  # how many events wait behind refused ones of their keys


def waiting_since(lane: LaneState, reply: Any, archived_since: int) -> int | None:
    """Return when a lane's oldest unapplied event entered the log (ms), None if unknown.

    If it was trimmed, the result is a lower bound: the later of the lane's last event and the first
    archived one.
    """
    if not isinstance(reply, list) or not reply:
        return None
    entry, fields = reply[0]
    n = fields.get(b"n", b"")
    if archived_since and n.isdigit() and int(n) > lane.n + 1:
        return max(archived_since, entry_ms(lane.entry))
    return int(entry.split(b"-")[0])


class JobsStatus(msgspec.Struct, frozen=True):
    """A provider's recall jobs; times are ISO 8601, UTC."""

    provider: str  # the provider
    queue: str  # the name of its RQ queue
    queued: int  # how many jobs wait and may still begin
    started: int  # how many jobs run
    failed: int  # how many recalls failed since the last day without a failure
    oldest_at: str | None  # when the oldest waiting job was enqueued, or None
    failing: int  # how many recalls failed in a row; 0 after a success
    skipped: int  # how many recalls were not made because of a pause or the queue's bound
    paused: bool  # whether the provider is not asked now because several recalls failed in a row
    failed_at: str | None  # when the last recall failed, or None
    error: str  # the last failure in one bounded line, credentials masked, or ""; hostile text
    # how prompts were answered since the last day without a prompt
    prompts: PromptCounts = PromptCounts()


class LogFigures(msgspec.Struct, frozen=True):
    """The log of all partitions; times are ISO 8601, UTC."""

    published: int = 0  # how many events ever entered the log
    entries: int = 0  # how many of these Redis holds
    bytes: int = 0  # the memory that these take
    # when the oldest of these entered the log, which is trimmed before it; null for none
    oldest_at: str | None = None
    duplicates: int = 0  # how many events came again and were skipped (G2)
    conflicts: int = 0  # how many events came again with another payload; the first one counts


class Continuity(msgspec.Struct, frozen=True):
    """Whether the log is whole."""

    log: str | None  # the id that it got when it was created; null if its record is gone
    gaps: list[Gap]  # the ranges of numbers that are missing, also those that only a record shows


class RedisStatus(msgspec.Struct, frozen=True):
    """The log's server; `durability` is "aof:everysec", "aof:always", "snapshots" or "memory"."""

    url: str
    version: str
    durability: str
    product: str = "Redis"


class SpoolStatus(msgspec.Struct, frozen=True):
    """The events in this host's spools that Redis has not taken; times are ISO 8601, UTC."""

    events: int
    bytes: int
    oldest_at: str | None


class WorkerStatus(msgspec.Struct, frozen=True):
    """A live worker; `version` is its release, "" if an older worker does not report it."""

    id: str
    host: str
    pid: int
    lanes: int
    heartbeat_at: str
    version: str = ""


class HostSpool(msgspec.Struct, frozen=True):
    """The events in the spools of one host that Redis has not taken, as a worker there reports."""

    host: str
    spool: SpoolStatus


class Status(msgspec.Struct, frozen=True):
    """What `memorybus status --json` prints: figures, and the alarms of the log."""

    redis: RedisStatus  # the log's server
    spool: SpoolStatus  # the events in this host's spools
    partitions: int  # how many partitions the log has
    # the providers, each with the figures of the instance that serves it
    providers: list[ProviderStatus]
    workers: list[WorkerStatus]  # the workers that are alive
    jobs: list[JobsStatus]  # the recall jobs of each provider
    alarms: list[Finding]  # what is wrong with the log, its Redis, its archive and its lanes
    continuity: Continuity  # whether the log is whole
    memory: Memory  # how full the memory of Redis is
    disk: Disk | None  # how full the embedded server's disk is; null for any other server
    archive: ArchiveStatus = ArchiveStatus()  # the status of the archive
    copies: list[ProviderStatus] = []  # the instances that serve no agent
    log: LogFigures = LogFigures()  # the figures of the log
    spools: list[HostSpool] = []  # the spools of all hosts with workers, and of this host
    canary_at: str | None = None  # when a canary last came through (ISO 8601, UTC); null for never
    settings_file: str = ""  # the settings file that the command read; "" for none
    # how many events a second agents published between two readings; null after a single one
    published_rate: float | None = None
    # the workers that fell silent within the last 15 minutes, without leaving, and that no other
    # worker replaced
    gone: list[WorkerStatus] = []
    model: ModelStatus | None = None  # the model of derivers; null if the settings name none


class StatusWithLanes(msgspec.Struct, frozen=True):
    """One reading: the status, and the lanes that it sums up, by instance and partition."""

    status: Status
    lanes: LanesByInstance
