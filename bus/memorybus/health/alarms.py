"""The alarms: findings about the log, its Redis and its archive, each with its remedy; pure.

Workers log them, `status` shows them, and `doctor` fails for the critical ones.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from memorybus.health.archive_status import ArchiveStatus
from memorybus.health.finding import Finding
from memorybus.health.memory import Disk, Memory, fill_level
from memorybus.health.providers import LaneFigures
from memorybus.log.continuity import (
    Gap,
    Numbers,
    PartitionView,
    count_foreign,
    find_archived_only,
    has_lost_counter,
)
from memorybus.log.losses import Loss
from memorybus.redis.facts import SAFE_POLICY
from memorybus.redis.keys import Keys, lane_name

_RESTORE_REMEDY = (
    "find who trims, deletes or flushes keys of this Redis and stop it; restore its backup if the "
    "events are needed. Lanes that had not read them continue behind the gap"
)
_HOW_LOST = {
    "wiped": "the log was wiped, or replaced by another one",
    "tail": "the log went back (restored, or deleted in part), and assigns these numbers again",
    "gap": "events were gone from the log before they were sealed",
}
_MEMORY_REMEDY = (
    "raise maxmemory or give the machine more memory; when it is full, spools hold what is "
    "published"
)
_SEAL_DELAY_SECONDS = 300.0
"""Seconds by which sealing may be late without an alarm."""

_SEAL_REMEDY = (
    "let a worker run where the archive can be reached; `memorybus archive run` seals now. Nothing "
    "is lost or trimmed meanwhile, and Redis holds what waits"
)
_SET_BACK_REMEDY = (
    "find why. Lanes read these events from the archive, and may have applied them before: a "
    "`lookup` provider is asked first, and for a `blind` one they wait as dead letters, to be "
    "retried or discarded (memorybus dlq ls). Afterwards"
)


_HALT_REMEDY = (
    "if this names the archive, run: memorybus archive verify; put the segment back from a copy "
    "(memorybus archive import), or make the archive reachable. Otherwise the worker's log has the "
    "whole error: repair what it names. The lane tries again every 30 s, and continues by itself"
)


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's INFO reports about how it keeps its data; the defaults mean no fault.

    Attributes:
        policy: its ``maxmemory-policy``.
        aof: whether it keeps an append-only file.
        aof_write: the result of the last write to that file: "ok", or an error.
        aof_rewrite: the result of its last rewrite.
        snapshot: the result of the last snapshot.
        replica: whether it is a replica, which takes no writes.
    """

    policy: str = SAFE_POLICY
    aof: bool = True
    aof_write: str = "ok"
    aof_rewrite: str = "ok"
    snapshot: str = "ok"
    replica: bool = False


def gap_alarms(gaps: list[Gap]) -> Iterator[Finding]:
    """Yield an alarm for each gap in the log."""
    for gap in gaps:
        # The subject leaves out the gap's end: a gap that grows is still the same one.
        subject = f"{lane_name(gap.partition)}:{gap.first}"
        yield Finding("data_loss", "critical", subject, str(gap), _RESTORE_REMEDY)


def loss_alarms(losses: list[Loss], keys: Keys) -> Iterator[Finding]:
    """Yield an alarm for each recorded loss; it lasts until an operator deletes the record."""
    for loss in losses:
        gaps = "; ".join(map(str, loss.gaps)) or "it held no event when it was last read"
        how = _HOW_LOST[loss.what]
        remedy = (
            f"restore the backup of Redis, or publish these events again if their source still has "
            f"them; afterwards: redis-cli hdel {keys.losses} {loss.name}"
        )
        yield Finding("data_loss", "critical", loss.name, f"{how}: {gaps}", remedy, loss.found_at)


def numbering_alarms(
    views: Mapping[int, PartitionView], numbers: Mapping[int, Numbers], keys: Keys
) -> Iterator[Finding]:
    """Yield an alarm for each partition with repeated numbers, soon or now, or foreign entries."""
    for partition, view in views.items():
        name, read = lane_name(partition), numbers.get(partition)
        if has_lost_counter(view) and view.last is not None:
            yield Finding(
                "numbering",
                "critical",
                name,
                f"partition {name}: the counter says {view.n}, the last event is {view.last.n}: "
                f"numbers will be assigned twice",
                f"stop publishing, then: redis-cli hset {keys.state(partition)} n {view.last.n}",
            )
        elif read is not None and read.restarted:
            yield Finding(
                "numbering",
                "critical",
                name,
                f"partition {name}: after event {read.restarted} the numbers begin anew: its "
                f"counter was lost",
                "renumber its events: memorybus archive repair --execute",
            )
        elif read is not None and (foreign := count_foreign(view, read)):
            yield Finding(
                "foreign_entries",
                "warning",
                name,
                f"partition {name}: {foreign} entries that memorybus did not write",
                f"find the program that adds to {keys.log(partition)}; lanes skip such entries",
            )


def server_alarms(facts: ServerState) -> Iterator[Finding]:
    """Yield an alarm for each fault in how the server keeps its data (G1)."""
    if facts.policy != SAFE_POLICY:
        yield Finding(
            "eviction_policy",
            "critical",
            facts.policy,
            f"maxmemory-policy is {facts.policy}, which lets Redis drop events",
            "run: redis-cli config set maxmemory-policy noeviction (and put it into redis.conf)",
        )
    if not facts.aof:
        yield Finding(
            "no_append_only_file",
            "warning",
            "aof",
            "Redis keeps no append-only file: `logged` events do not survive its crash",
            "run: redis-cli config set appendonly yes (and put it into redis.conf)",
        )
    if facts.replica:
        text = "Redis is a replica and takes no writes (READONLY)"
        remedy = "let `url` name the master, or promote this server: redis-cli replicaof no one"
        yield Finding("read_only", "critical", "redis", text, remedy)
    yield from _failed_writes(facts)


def _failed_writes(facts: ServerState) -> Iterator[Finding]:
    remedy = "make room on the disk of Redis and see its log; spools hold what is published"
    if facts.aof and facts.aof_write != "ok":
        text = "the append-only file cannot be written: Redis refuses writes (MISCONF)"
        yield Finding("persistence", "critical", "aof", text, remedy)
    if facts.aof and facts.aof_rewrite != "ok":
        text = "the append-only file could not be rewritten, so it grows without end"
        yield Finding("persistence", "warning", "aof rewrite", text, remedy)
    if facts.snapshot != "ok":
        text = "the last snapshot failed: Redis may refuse writes (MISCONF)"
        yield Finding("persistence", "critical", "snapshot", text, remedy)


def memory_alarms(memory: Memory, untrimmed: str = "") -> Iterator[Finding]:
    """Yield an alarm if the memory of Redis is nearly full.

    Args:
        memory: how full it is.
        untrimmed: why nothing is trimmed; "" if the archive works.
    """
    level = fill_level(memory.share)
    if level != "ok":
        why = f"nothing is trimmed: {untrimmed}" if untrimmed else "make `hot_window` shorter"
        remedy = f"{why}; or {_MEMORY_REMEDY}"
        yield Finding("memory", level, level, f"memory of Redis: {memory}", remedy)


def archive_alarms(archive: ArchiveStatus, late: float | None) -> Iterator[Finding]:
    """Yield an alarm for each fault of the archive (G7).

    Args:
        archive: its status.
        late: seconds by which the oldest unsealed event is overdue; None if there is none.
    """
    if archive.damaged:
        yield Finding("archive", "critical", "damaged", archive.error, "do as the message says")
    elif late is not None and late > _SEAL_DELAY_SECONDS:
        text = f"sealing is late: {archive.error or 'its worker is slow'}; events wait"
        yield Finding("archive", "warning", "late", text, _SEAL_REMEDY, archive.oldest_unsealed_at)


def set_back_alarms(views: Mapping[int, PartitionView], keys: Keys) -> Iterator[Finding]:
    """Yield one alarm if Redis is older than its archive; it lasts until an operator ends it."""
    ranges = {partition: find_archived_only(view) for partition, view in views.items()}
    found = {partition: numbers for partition, numbers in ranges.items() if numbers}
    if found:
        names = ", ".join(map(lane_name, found))
        which = ", ".join(
            f"partition {lane_name(partition)}: events {numbers[0]} to {numbers[-1]}"
            for partition, numbers in found.items()
        )
        how = "Redis came back older than its archive (a restored copy, or a lost tail)"
        text = f"{how}: {which}; only the archive has them"
        states = " ".join(f"'{keys.state(partition)}'" for partition in found)
        remedy = f"{_SET_BACK_REMEDY}: for key in {states}; do redis-cli hdel $key set_back; done"
        yield Finding("archive_ahead", "warning", names, text, remedy)


def disk_alarms(disk: Disk | None) -> Iterator[Finding]:
    """Yield an alarm if the embedded server's disk has little room to rewrite its file."""
    level = "ok" if disk is None else fill_level(disk.share)
    if level != "ok":
        remedy = "make room on the disk of data_dir: Redis refuses writes when it is full"
        yield Finding("disk", level, level, f"disk of Redis: {disk}", remedy)


def halted_lane_alarms(lanes: Mapping[str, Sequence[LaneFigures]]) -> Iterator[Finding]:
    """Yield an alarm for each lane that has stopped.

    Args:
        lanes: the lanes of each instance, by partition.
    """
    for name, of_provider in lanes.items():
        for partition, lane in enumerate(of_provider):
            if lane.halted:
                where = lane_name(partition)
                text = f"provider {name}, partition {where} is stopped: {lane.halted}"
                yield Finding("lane_halted", "critical", f"{name}:{where}", text, _HALT_REMEDY)
