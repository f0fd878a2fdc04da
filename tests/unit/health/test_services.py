"""Findings about workers, providers and recalls: what is said, and what to do."""

from typing import Any

import msgspec
import pytest
from helpers.stories.statuses import provider, status
from memorybus.archive.objects.store import missing_extra_error
from memorybus.errors import install_command
from memorybus.health.finding import Finding
from memorybus.health.findings import (
    find_gone_workers,
    find_no_worker,
    find_paused,
    find_recall_trouble,
    find_untrimmed,
    findings_of,
)
from memorybus.health.status import (
    ArchiveStatus,
    JobsStatus,
    SpoolStatus,
    WorkerStatus,
)
from memorybus.recall.queue import JOB_TTL_SECONDS, MAX_WAITING_JOBS
from memorybus.text.display import iso

NOW = 1_700_000_000_000
WELL = JobsStatus(
    provider="rec",
    queue="mb-recall-rec",
    queued=0,
    started=0,
    failed=0,
    oldest_at=None,
    failing=0,
    skipped=0,
    paused=False,
    failed_at=None,
    error="",
)


def with_(**changed: Any) -> JobsStatus:
    """Return a queue's status that differs from one that is well."""
    return msgspec.structs.replace(WELL, **changed)


@pytest.mark.parametrize(
    ("jobs", "ok", "said", "fix"),
    [
        ((), True, "", ""),
        ((WELL,), True, "", ""),
        ((WELL, with_(queued=3, oldest_at=iso(NOW - 1_000))), True, "", ""),
        ((with_(failed=9),), True, "", ""),
        (
            (WELL, with_(failing=1, error="Unavailable: down")),
            True,
            "mb-recall-rec: 1 failed in a row, the last with: Unavailable: down",
            "look at the backend",
        ),
        ((with_(failing=5, paused=True, error="x"),), False, "recalls paused", "backend"),
        ((with_(failing=3, error="x"),), False, "3 failed in a row, the last", "backend"),
        ((with_(queued=MAX_WAITING_JOBS),), False, "too many recalls wait", "--jobs"),
        (
            (with_(queued=1, oldest_at=iso(NOW - JOB_TTL_SECONDS * 900)),),
            False,
            "wait (1)",
            "--jobs",
        ),
    ],
)
def test_recalls_that_fail_or_pile_up_are_told(jobs, ok, said, fix):
    """G10: failures warn, and fail the check from the third on; a pile names the remedy."""
    found = list(find_recall_trouble(jobs, NOW))
    assert all(one.severity == "warning" for one in found) is ok
    assert said in "; ".join(one.text for one in found)
    assert fix in "; ".join(one.remedy for one in found)
    assert bool(found) is bool(fix)


@pytest.mark.parametrize(
    ("one", "code", "severity", "said"),
    [
        (provider(name="mem0", failing="Transient: 500"), "failing", "critical", "Transient: 500"),
        (
            provider(dead_letters=7, refused=2, waiting_behind=5),
            "dead_letters",
            "critical",
            "2 events refused, 5 behind",
        ),
        (provider(paused="upgrade", backlog=3), "paused", "warning", "upgrade (backlog 3)"),
    ],
)
def test_what_is_wrong_with_a_provider_is_found(one, code, severity, said):
    """G6, G9: a backend that is down, refused events and a pause are named, with what to run."""
    (found,) = [f for f in findings_of(status(one), ("p",), NOW) if f.code == code]
    assert (found.severity, found.subject) == (severity, one.name)
    assert said in found.text
    assert found.remedy


GONE = WorkerStatus("w-1", "h", 1, 0, "2023-11-14T22:11:20.000Z")
"""It fell silent two minutes before `NOW`."""


def test_a_worker_that_disappeared_is_found():
    """A killed worker is named with its age; if it was the last one, that is the one finding."""
    alive = msgspec.structs.replace(GONE, id="w-2")
    (found,) = find_gone_workers(status(workers=[alive], gone=[GONE]), NOW)
    assert (found.code, found.severity, found.since) == (
        "worker_gone",
        "warning",
        GONE.heartbeat_at,
    )
    assert found.text == "worker w-1 disappeared 2 minutes ago"
    last = status(gone=[GONE])
    assert list(find_gone_workers(last, NOW)) == []
    (none,) = find_no_worker(last, NOW)
    assert none.text == "no worker is alive: worker w-1 disappeared 2 minutes ago"


@pytest.mark.parametrize(("code", "subject"), [("read_only", "redis"), ("persistence", "aof")])
def test_a_redis_that_refuses_writes_is_one_finding(code, subject):
    """What follows from a Redis that takes no writes is not told beside it."""
    alarm = Finding(code, "critical", subject, "no writes", "repair it")
    assert findings_of(status(provider(lanes_owned=0), alarms=[alarm]), ("p",), NOW) == [alarm]


@pytest.mark.parametrize(("spooled", "told"), [(0, True), (3, False)])
def test_a_failed_snapshot_hides_no_dead_worker(spooled, told):
    """Only while events wait in spools does a failed snapshot explain that no worker is seen."""
    alarm = Finding("persistence", "critical", "snapshot", "it failed", "repair it")
    seen = status(provider(), alarms=[alarm], spool=SpoolStatus(spooled, 9, None))
    assert ("no_worker" in {one.code for one in findings_of(seen, ("p",), NOW)}) is told


def test_a_missing_extra_is_no_emergency():
    """A base install without the extra `archive` warns that nothing is trimmed."""
    error = str(missing_extra_error(ImportError(name="pyarrow")))
    (found,) = find_untrimmed(ArchiveStatus(error=error, hindered=True), [])
    assert found.severity == "warning"
    assert install_command("archive") in found.text


def test_the_alarms_come_first_then_who_does_not_work():
    """G10: one list has the alarms of the log and all that the figures say is wrong."""
    assert [f.code for f in findings_of(status(provider()), ("p",), NOW)] == [
        "foreign_entries",
        "no_worker",
        "archive",
    ]


def test_what_is_kept_for_a_rollback_is_no_pause():
    """G8: it shall stand still, whatever its pause says; a copy that somebody paused is told."""
    kept = provider(name="p", copy_of="p", paused="kept", kept=True)
    held = provider(name="may", copy_of="p", paused="kept for memorybus rebuild --rollback")
    found = list(find_paused(status(provider(name="q"), copies=[kept, held])))
    assert [one.subject for one in found] == ["may"]


@pytest.mark.parametrize(
    ("archive", "alarms", "severities"),
    [
        (ArchiveStatus(working=True), [], []),
        (ArchiveStatus(), [], ["warning"]),
        (ArchiveStatus(), ["warning"], []),
        (ArchiveStatus(hindered=True), ["warning"], ["critical"]),
        (ArchiveStatus(hindered=True, damaged=True), ["critical"], []),
    ],
)
def test_an_alarm_of_the_archive_hides_no_worse_finding(archive, alarms, severities):
    """G7: why nothing is trimmed is told once, and late sealing does not make an error milder."""
    known = [Finding("archive", severity, "late", "sealing is stopped", "") for severity in alarms]
    assert [one.severity for one in find_untrimmed(archive, known)] == severities
