"""Findings about workers, providers, recalls and the archive's work, from the figures; pure.

The alarms tell of the log and its Redis; these tell of those who work on it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from memorybus.health.archive_status import ArchiveStatus, describe_archive
from memorybus.health.finding import Finding
from memorybus.health.monitor import Status
from memorybus.health.providers import ProviderStatus
from memorybus.health.recalls import JobsStatus
from memorybus.recall.breaker import ENDURED
from memorybus.recall.queue import LIFE, LONGEST

START = "run: memorybus up"
"""The remedy where nothing runs."""

_LATE = LIFE / 2
"""Seconds that a recall may wait before it is a finding."""

_KEEPS = "Redis keeps every event until then"


def findings_of(status: Status, now_ms: int) -> list[Finding]:
    """Return everything that a status shows to be wrong: the alarms first.

    Args:
        status: the figures.
        now_ms: this machine's wall time in milliseconds.
    """
    return [
        *status.alarms,
        *no_worker(status),
        *dead_letters(status),
        *failing(status),
        *paused(status),
        *recalls(status.jobs, now_ms),
    ]


def no_worker(status: Status) -> Iterator[Finding]:
    """Yield a finding if no worker is alive."""
    if not status.workers:
        yield Finding("no_worker", "critical", "workers", "no worker is alive", START)


def unserved(status: Status, configured: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each provider that has lanes without an owner.

    A provider that fails or is paused has findings of its own.

    Args:
        status: the figures.
        configured: the providers of the settings.
    """
    for one in status.providers:
        if one.lanes_owned >= one.lanes or one.failing or one.paused:
            continue
        if one.name in configured and not one.lanes_owned:
            text = f"configured, but no worker serves: {one.name}"
            remedy = (
                f"see that `providers` names what you mean, and restart the worker, or run: "
                f"memorybus worker --providers {one.name}"
            )
        else:
            text, remedy = f"lanes without an owner: {one.name}", "run: memorybus worker"
        yield Finding("unserved", "critical", one.name, text, remedy)


def failing(status: Status) -> Iterator[Finding]:
    """Yield a finding for each instance whose backend seems to be down (G6)."""
    remedy = (
        "mend the backend or its options; lanes wait, nothing is parked, and they go on by "
        "themselves"
    )
    for one in _instances(status):
        if one.failing:
            text = f"{one.name} waits, its calls fail: {one.failing}"
            yield Finding("failing", "critical", one.name, text, remedy)


def paused(status: Status) -> Iterator[Finding]:
    """Yield a finding for each instance that somebody paused: a forgotten pause costs much.

    An instance that is kept for a rollback is paused for good, and no finding.
    """
    for one in _instances(status):
        if one.paused and not one.kept:
            name = one.live or one.name
            text = f"{name} is paused: {one.paused} ({one.backlog} events wait)"
            remedy = f"nothing is lost; to go on: memorybus provider resume {name}"
            yield Finding("paused", "warning", name, text, remedy)


def dead_letters(status: Status) -> Iterator[Finding]:
    """Yield a finding for each instance that refused events for good (G6)."""
    remedy = "see why: memorybus dlq ls --group error; then: memorybus dlq retry, edit or discard"
    for one in _instances(status):
        if one.dead_letters:
            held = f"{one.name} ({one.dead_letters} events, {one.parked_keys} keys)"
            text = f"refused, or waiting behind what was refused: {held}"
            yield Finding("dead_letters", "critical", one.name, text, remedy)


def recalls(jobs: Sequence[JobsStatus], now_ms: int) -> Iterator[Finding]:
    """Yield a finding for each queue whose recalls fail or pile up.

    Args:
        jobs: the queues.
        now_ms: this machine's wall time in milliseconds.
    """
    for one in jobs:
        if one.failing:
            yield Finding(
                "recalls",
                "critical" if one.failing >= ENDURED else "warning",
                one.queue,
                f"{one.queue}: {one.failing} failed in a row"
                f"{', asking pauses' if one.paused else ''}, the last with: {one.error}",
                "look at the backend and its options; asking goes on by itself once it answers",
            )
        elif one.queued >= LONGEST or _age(one, now_ms) > _LATE:
            yield Finding(
                "recalls",
                "critical",
                one.queue,
                f"{one.queue}: too many recalls wait ({one.queued}); one that waits {LIFE} s is "
                f"dropped",
                "run more recall processes: memorybus worker --jobs 2",
                one.oldest_at,
            )


def untrimmed(archive: ArchiveStatus) -> Iterator[Finding]:
    """Yield a finding if nothing is trimmed: Redis fills up, however long that takes (G7).

    It is critical if an error keeps all workers from archiving: that does not end by itself.
    """
    if archive.working:
        return
    text = describe_archive(archive)
    if archive.hindered:
        remedy = f"do as the message says, and restart the workers; {_KEEPS}"
        yield Finding("archive", "critical", "untrimmed", text, remedy)
    else:
        remedy = f"let a worker run where the archive can be reached; {_KEEPS}"
        yield Finding("archive", "warning", "untrimmed", text, remedy)


def _instances(status: Status) -> list[ProviderStatus]:
    return [*status.providers, *status.copies]


def _age(jobs: JobsStatus, now_ms: int) -> float:
    """Return the seconds that the oldest job has waited, if the clocks agree."""
    if jobs.oldest_at is None:
        return 0.0
    return now_ms / 1000 - datetime.fromisoformat(jobs.oldest_at).timestamp()
