"""Finds what is wrong with the bus, from its figures; pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from memorybus.archive.objects.store import MISSING_EXTRA
from memorybus.errors import LogUnavailable
from memorybus.health.finding import Finding, Severity
from memorybus.health.model_status import find_model_trouble
from memorybus.health.status import (
    ArchiveStatus,
    Disk,
    JobsStatus,
    Memory,
    ProviderStatus,
    SpoolStatus,
    Status,
    WorkerStatus,
    describe_archive,
    fill_level,
)
from memorybus.log.continuity import (
    Gap,
    Numbers,
    PartitionView,
    count_foreign,
    find_archived_only,
)
from memorybus.recall.health import FAILURES_BEFORE_PAUSE
from memorybus.recall.queue import JOB_TTL_SECONDS, MAX_WAITING_JOBS
from memorybus.redis.facts import SAFE_POLICY
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.lanes import LaneState
from memorybus.text.display import count_text, format_duration

_RESTORE_REMEDY = (
    "find who trims, deletes or flushes keys of this Redis and stop it; restore its backup if the "
    "events are needed. Lanes that had not read them continue behind the gap"
)
_PUBLISH_AGAIN = (
    "restore the backup of Redis, or publish these events again if their source still has them"
)
_HOW_LOST: Mapping[str, str] = {
    "wiped": "the log was wiped, or replaced by another one",
    "tail": "the log went back (restored, or deleted in part), and assigns these numbers again",
    "gap": "events were gone from the log before they were sealed",
}
_MEMORY_REMEDY = (
    "raise maxmemory or give the machine more memory; when it is full, spools hold what is "
    "published"
)
_SEAL_DELAY_SECONDS = 300.0  # seconds by which sealing may be late without an alarm

_SEAL_REMEDY = (
    "let a worker run where the archive can be reached; `memorybus archive run` seals now. Nothing "
    "is lost or trimmed meanwhile, and Redis holds what waits"
)
_DAMAGE_REMEDY = (
    "see which files: memorybus archive verify; put them back from a copy of the archive"
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
    """What a server's INFO reports about how it keeps its data; the defaults mean no fault."""

    policy: str = SAFE_POLICY  # its ``maxmemory-policy``
    aof: bool = True  # whether it keeps an append-only file
    aof_write: str = "ok"  # the result of the last write to that file: "ok", or an error
    aof_rewrite: str = "ok"  # the result of its last rewrite
    snapshot: str = "ok"  # the result of the last snapshot
    replica: bool = False  # whether it is a replica, which takes no writes


def gap_alarms(gaps: Sequence[Gap], keys: Keys) -> Iterator[Finding]:
    """Yield an alarm for each gap that the log shows, and for each record of others."""
    for record, of_record in groupby(gaps, key=lambda gap: gap.record):
        lost = list(of_record)
        if record:
            text = f"{_how_lost(record)}: {'; '.join(map(str, lost))}"
            remedy = f"{_PUBLISH_AGAIN}; afterwards: redis-cli hdel {keys.losses} {record}"
            yield Finding("data_loss", "critical", record, text, remedy, lost[0].found_at)
            continue
        for gap in lost:
            # The subject leaves out the gap's end: a gap that grows is still the same one.
            subject = f"{lane_name(gap.partition)}:{gap.first}"
            yield Finding("data_loss", "critical", subject, str(gap), _RESTORE_REMEDY)


def _how_lost(record: str) -> str:
    return _HOW_LOST.get(record.partition(":")[0], "the log lost events")


def foreign_alarms(
    views: Mapping[int, PartitionView], numbers: Mapping[int, Numbers], keys: Keys
) -> Iterator[Finding]:
    for partition, view in views.items():
        name, read = lane_name(partition), numbers.get(partition)
        if read is not None and (foreign := count_foreign(view, read)):
            yield Finding(
                "foreign_entries",
                "warning",
                name,
                f"partition {name}: {foreign} entries that another program wrote",
                f"find the program that adds to {keys.log(partition)}; lanes skip such entries",
            )


def server_alarms(facts: ServerState) -> Iterator[Finding]:
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
    """Yield an alarm if memory is nearly full; `untrimmed` is why nothing is trimmed, or ""."""
    level = fill_level(memory.share)
    if level != "ok":
        why = f"nothing is trimmed: {untrimmed}" if untrimmed else "make `hot_window` shorter"
        remedy = f"{why}; or {_MEMORY_REMEDY}"
        yield Finding("memory", level, level, f"memory of Redis: {memory}", remedy)


def archive_alarms(archive: ArchiveStatus, late: float | None) -> Iterator[Finding]:
    if archive.damaged:
        yield Finding("archive", "critical", "damaged", archive.error, _DAMAGE_REMEDY)
    elif late is not None and late > _SEAL_DELAY_SECONDS:
        text = f"sealing is late: {archive.error or 'its worker is slow'}; events wait"
        yield Finding("archive", "warning", "late", text, _SEAL_REMEDY, archive.oldest_unsealed_at)


def set_back_alarms(views: Mapping[int, PartitionView], keys: Keys) -> Iterator[Finding]:
    """Yield one alarm if Redis is older than its archive; it lasts until an operator ends it."""
    ranges = {partition: find_archived_only(view) for partition, view in views.items()}
    filled = {partition: numbers for partition, numbers in ranges.items() if numbers}
    if filled:
        names = ", ".join(map(lane_name, filled))
        which = ", ".join(
            f"partition {lane_name(partition)}: events {numbers[0]} to {numbers[-1]}"
            for partition, numbers in filled.items()
        )
        how = "Redis came back older than its archive (a restored copy, or a lost tail)"
        text = f"{how}: {which}; only the archive has them"
        states = " ".join(f"'{keys.state(partition)}'" for partition in filled)
        remedy = f"{_SET_BACK_REMEDY}: for key in {states}; do redis-cli hdel $key set_back; done"
        yield Finding("archive_ahead", "warning", names, text, remedy)


def disk_alarms(disk: Disk | None) -> Iterator[Finding]:
    """Yield an alarm if the embedded server's disk has little room to rewrite its file."""
    level = "ok" if disk is None else fill_level(disk.share)
    if level != "ok":
        remedy = "make room on the disk of data_dir: Redis refuses writes when it is full"
        yield Finding("disk", level, level, f"disk of Redis: {disk}", remedy)


def halted_lane_alarms(lanes: Mapping[str, Sequence[LaneState]]) -> Iterator[Finding]:
    for name, of_provider in lanes.items():
        for partition, lane in enumerate(of_provider):
            if lane.halted:
                where = lane_name(partition)
                text = f"provider {name}, partition {where} is stopped: {lane.halted}"
                yield Finding("lane_halted", "critical", f"{name}:{where}", text, _HALT_REMEDY)


START_REMEDY = "run: memorybus up"  # the remedy where nothing runs
LOG_OF_WORKERS = "journalctl -u memorybus-worker, or docker compose logs worker"
"""How to read the log of workers."""

_RECALL_WAIT_SECONDS = JOB_TTL_SECONDS / 2  # seconds that a recall may wait without a finding
_STALL_SECONDS = 60.0  # seconds that an event may wait without a finding if no event is applied
_BEHIND_SECONDS = 300.0  # seconds that an event may wait without a finding if others are applied
_HOT_LANE_EVENTS = 1_000
_HOT_LANE_SHARE = 0.8
_HOT_LANE_MIN_LANES = 4
"""A hot lane holds at least this share of a backlog of at least so many events; its provider has at
least so many lanes."""

_REDIS_KEEPS_EVENTS = "Redis keeps every event until then"


def findings_of(status: Status, configured: Sequence[str], now_ms: int) -> list[Finding]:
    """Return all that is wrong, the alarms first."""
    lasting = [*find_dead_letters(status), *find_failing(status), *find_paused(status)]
    if refuses_writes(status):
        return [*(_since_oldest_unsent(alarm, status) for alarm in status.alarms), *lasting]
    return [
        *status.alarms,
        *find_no_worker(status, now_ms),
        *lasting,
        *find_gone_workers(status, now_ms),
        *find_recall_trouble(status.jobs, now_ms),
        *find_behind(status, now_ms),
        *find_hot_lanes(status),
        *find_waiting_spools(status, now_ms),
        *find_mixed_versions(status),
        *find_unserved(status, configured),
        *find_untrimmed(status.archive, status.alarms),
        *find_model_trouble(status.model),
    ]


def refuses_writes(status: Status) -> bool:
    """Return whether an alarm explains why no worker can show itself, own lanes or archive."""
    return any(_refuses_writes(alarm, status) for alarm in status.alarms)


def _refuses_writes(alarm: Finding, status: Status) -> bool:
    unsent = status.spool.events > 0
    return alarm.code == "read_only" or (
        alarm.code == "persistence"
        and (alarm.subject == "aof" or (alarm.subject == "snapshot" and unsent))
    )


def _since_oldest_unsent(alarm: Finding, status: Status) -> Finding:
    """Date a refusal by the first event that Redis did not take, as far as this host knows."""
    if alarm.since or not _refuses_writes(alarm, status):
        return alarm
    return msgspec.structs.replace(alarm, since=status.spool.oldest_at)


def redis_away_finding(error: LogUnavailable, spool: SpoolStatus) -> Finding:
    """Return the finding that Redis does not answer, so that nothing else can be found (G9)."""
    text = f"{error.problem}; {count_text(spool.events, 'unsent event')} in spools here"
    remedy = f"{error.remedy or 'repair what the error names'}; spools are sent by themselves then"
    return Finding("redis_away", "critical", "redis", text, remedy, spool.oldest_at)


def find_no_worker(status: Status, now_ms: int) -> Iterator[Finding]:
    """Yield a finding if no worker is alive; it names those that disappeared."""
    if not status.workers:
        gone = "; ".join(_describe_gone(worker, now_ms) for worker in status.gone)
        text = f"no worker is alive: {gone}" if gone else "no worker is alive"
        since = max((worker.heartbeat_at for worker in status.gone), default=None)
        yield Finding("no_worker", "critical", "workers", text, START_REMEDY, since)


def find_gone_workers(status: Status, now_ms: int) -> Iterator[Finding]:
    """Yield a finding for each worker that fell silent within 15 minutes, if others are alive."""
    for worker in status.gone if status.workers else ():
        remedy = f"see on {worker.host} why it ended (its log, or dmesg), and start it again"
        text = _describe_gone(worker, now_ms)
        yield Finding("worker_gone", "warning", worker.id, text, remedy, worker.heartbeat_at)


def _describe_gone(worker: WorkerStatus, now_ms: int) -> str:
    ago = format_duration(_age(worker.heartbeat_at, now_ms))
    return f"worker {worker.id} disappeared {ago} ago"


def find_unserved(status: Status, configured: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each provider that has lanes without an owner, if a worker is alive."""
    for provider in status.providers if status.workers else ():
        if provider.lanes_owned >= provider.lanes or provider.failing or provider.paused:
            continue
        if provider.name in configured and not provider.lanes_owned:
            text = f"{provider.name} is configured, but no worker serves it"
            remedy = (
                f"check the setting `providers` and restart the worker, or run: "
                f"memorybus worker --providers {provider.name}"
            )
        else:
            text, remedy = f"{provider.name} has lanes without an owner", "run: memorybus worker"
        yield Finding("unserved", "critical", provider.name, text, remedy)


def find_failing(status: Status) -> Iterator[Finding]:
    for instance in _instances(status):
        if instance.failing:
            name, since = instance.name, instance.failing_since
            waiting = f" (backlog {instance.backlog})" if instance.backlog else ""
            text = f"{name} is failing: {instance.failing}{waiting}"
            remedy = (
                "repair the backend or its options; until then lanes wait and nothing is parked. "
                f"They continue by themselves; at once with: memorybus provider retry-now {name}"
            )
            yield Finding("failing", "critical", name, text, remedy, since)


def find_paused(status: Status) -> Iterator[Finding]:
    """Yield a finding for each paused instance: a forgotten pause costs much."""
    for instance in _instances(status):
        if instance.paused and not instance.kept:
            name = instance.live or instance.name
            text = f"{name} is paused: {instance.paused} (backlog {instance.backlog})"
            remedy = f"nothing is lost; to resume it: memorybus provider resume {name}"
            yield Finding("paused", "warning", name, text, remedy)


def find_dead_letters(status: Status) -> Iterator[Finding]:
    remedy = "see why: memorybus dlq ls --group error; then: memorybus dlq retry, edit or discard"
    for instance in _instances(status):
        if instance.dead_letters:
            refused = count_text(instance.refused, "event")
            text = f"{instance.name}: {refused} refused, {instance.waiting_behind} behind"
            yield Finding("dead_letters", "critical", instance.name, text, remedy)


def find_behind(status: Status, now_ms: int) -> Iterator[Finding]:
    """Yield a finding for each provider that is late although it could work."""
    for provider in status.providers:
        age = _age(provider.oldest_unapplied_at, now_ms)
        if not provider.lanes_owned or provider.failing or provider.paused or age <= _STALL_SECONDS:
            continue
        waits = f"{provider.name}: backlog {provider.backlog}, the oldest event {age:.0f} s old"
        since = provider.oldest_unapplied_at
        if provider.rate == 0:
            remedy = f"see why: {LOG_OF_WORKERS}"
            text = f"{waits}; no progress"
            yield Finding("behind", "critical", provider.name, text, remedy, since)
        elif age > _BEHIND_SECONDS:
            ends = "" if provider.seconds_left is None else f", ETA {provider.seconds_left:.0f} s"
            pace = (
                "" if provider.rate is None else f"; {provider.rate:.0f} events/s are applied{ends}"
            )
            remedy = "if it does not catch up: more --processes, more workers, more --concurrency"
            yield Finding("behind", "warning", provider.name, f"{waits}{pace}", remedy, since)


def find_hot_lanes(status: Status) -> Iterator[Finding]:
    """Yield a finding for each provider whose backlog is nearly all in one of its lanes."""
    for provider in status.providers:
        share = provider.busiest_backlog / provider.backlog if provider.backlog else 0.0
        if (
            provider.lanes >= _HOT_LANE_MIN_LANES
            and provider.busiest_backlog >= _HOT_LANE_EVENTS
            and share >= _HOT_LANE_SHARE
        ):
            text = (
                f"{provider.name}: {provider.busiest_backlog} of {provider.backlog} waiting events "
                f"are in lane {provider.busiest}: one key, or few, are busier than their provider"
            )
            remedy = "see who sends them: memorybus events tail; more workers do not help"
            yield Finding(
                "hot_lane", "warning", provider.name, text, remedy, provider.oldest_unapplied_at
            )


def find_waiting_spools(status: Status, now_ms: int) -> Iterator[Finding]:
    """Yield a finding for each host whose events have waited for Redis too long."""
    for spool in status.spools:
        age = _age(spool.spool.oldest_at, now_ms)
        if age > _STALL_SECONDS:
            waits = f"{count_text(spool.spool.events, 'unsent event')}, the oldest {age:.0f} s old"
            remedy = f"see on {spool.host} whether agents reach Redis: memorybus doctor"
            since = spool.spool.oldest_at
            yield Finding("spool", "warning", spool.host, f"{spool.host}: {waits}", remedy, since)


def find_mixed_versions(status: Status) -> Iterator[Finding]:
    """Yield a finding if workers of several releases are alive: an upgrade was not finished."""
    versions = Counter(worker.version or "an older one" for worker in status.workers)
    if len(versions) > 1:
        counts = ", ".join(f"{count} of {version}" for version, count in sorted(versions.items()))
        remedy = "restart the workers of older releases: memorybus status names their hosts"
        text = f"workers have different releases: {counts}"
        yield Finding("versions", "warning", "workers", text, remedy)


def find_recall_trouble(jobs: Sequence[JobsStatus], now_ms: int) -> Iterator[Finding]:
    for queue in jobs:
        if queue.failing:
            yield Finding(
                "recalls",
                "critical" if queue.failing >= FAILURES_BEFORE_PAUSE else "warning",
                queue.queue,
                f"{queue.queue}: {queue.failing} failed in a row"
                f"{', recalls paused' if queue.paused else ''}, the last with: {queue.error}",
                "look at the backend and its options; recalls resume by themselves once it answers",
            )
        elif (
            queue.queued >= MAX_WAITING_JOBS or _age(queue.oldest_at, now_ms) > _RECALL_WAIT_SECONDS
        ):
            yield Finding(
                "recalls",
                "critical",
                queue.queue,
                f"{queue.queue}: too many recalls wait ({queue.queued}); one that waits "
                f"{JOB_TTL_SECONDS} s is dropped",
                "run more recall processes: memorybus worker --jobs 2",
                queue.oldest_at,
            )


def find_untrimmed(archive: ArchiveStatus, alarms: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a finding if the log is not trimmed, so that Redis fills up sooner or later (G7).

    It is critical if an error keeps all workers from archiving, and a warning without the extra
    `archive`. An alarm of the archive that is as severe replaces it.
    """
    severities = {alarm.severity for alarm in alarms if alarm.code == "archive"}
    lacks_extra = MISSING_EXTRA in archive.error
    emergency = archive.hindered and not lacks_extra
    if archive.working or "critical" in severities or (severities and not emergency):
        return
    text = describe_archive(archive)
    if archive.hindered:
        severity: Severity = "critical" if emergency else "warning"
        remedy = f"repair what the error names, restart the workers; {_REDIS_KEEPS_EVENTS}"
        yield Finding("archive", severity, "untrimmed", text, remedy)
    else:
        remedy = f"let a worker run where the archive can be reached; {_REDIS_KEEPS_EVENTS}"
        yield Finding("archive", "warning", "untrimmed", text, remedy)


def _instances(status: Status) -> list[ProviderStatus]:
    return [*status.providers, *status.copies]


def _age(since: str | None, now_ms: int) -> float:
    return 0.0 if since is None else now_ms / 1000 - datetime.fromisoformat(since).timestamp()
