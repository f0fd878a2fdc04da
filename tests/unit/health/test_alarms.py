"""Alarms: each has a code, a subject that lasts as long as it does, and a remedy."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from helpers.stories.statuses import provider, status
from memorybus.archive.objects.store import missing_extra_error
from memorybus.archive.seals import ArchiverReport, ArchiverReports
from memorybus.errors import install_command
from memorybus.health import findings as alarms
from memorybus.health import log_health as health
from memorybus.health.finding import Finding
from memorybus.health.findings import (
    ServerState,
    find_gone_workers,
    find_no_worker,
    find_paused,
    find_recall_trouble,
    find_untrimmed,
    findings_of,
)
from memorybus.health.status import (
    ArchiveStatus,
    Disk,
    JobsStatus,
    Memory,
    SpoolStatus,
    WorkerStatus,
    available_bytes,
    build_archive_status,
    describe_archive,
    read_memory,
)
from memorybus.log.continuity import Gap, Numbers, PartitionView
from memorybus.log.entry import Place
from memorybus.log.losses import lost_gap
from memorybus.recall.queue import JOB_TTL_SECONDS, MAX_WAITING_JOBS
from memorybus.redis.keys import Keys
from memorybus.text.display import iso

KEYS = Keys("ns")
AT = "2026-01-01T00:00:00.000Z"
QUIET = Memory(10, 100, "maxmemory")


def memory(used: int) -> Memory:
    """Return a memory of which so many per cent are used."""
    return Memory(used, 100, "maxmemory")


def short(found: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Return what tells alarms apart."""
    seen = list(found)
    assert all(alarm.text and alarm.remedy for alarm in seen)
    return [(alarm.code, alarm.severity, alarm.subject) for alarm in seen]


def test_a_gap_that_grows_is_the_same_alarm():
    """G7: a gap is told by where it begins, so that a growing one is one alarm, not many."""
    first, later = (
        short(alarms.gap_alarms([gap], KEYS)) for gap in (Gap(3, 1, 4, 4), Gap(3, 1, 90, 90))
    )
    assert first == later == [("data_loss", "critical", "p03:1")]
    (alarm,) = alarms.gap_alarms([Gap(3, 1, 4, 4)], KEYS)
    assert "partition p03: events 1 to 4 are gone" in alarm.text


@pytest.mark.parametrize(
    ("how", "subject", "text"),
    [
        ("wiped", "wiped:ab", "another one: partition p02: events 5 to 7 are gone; partition p03"),
        ("tail", "tail:ab:2:5-7", "went back"),
        ("gap", "gap:ab:2:5-7", "before they were sealed"),
    ],
)
def test_a_record_names_the_command_that_ends_it(how, subject, text):
    """G1: what a worker saw stays an alarm until an operator deletes it by the command told."""
    gaps = [Gap(2, 5, 7, 3), *([Gap(3, 1, 4, 4)] if how == "wiped" else ())]
    (alarm,) = alarms.gap_alarms([lost_gap(how, "ab", gap, AT) for gap in gaps], KEYS)
    assert alarm.since == AT
    assert (alarm.code, alarm.severity, alarm.subject) == ("data_loss", "critical", subject)
    assert text in alarm.text
    assert alarm.remedy.endswith(f"redis-cli hdel ns:losses {subject}")


def test_foreign_entries_are_counted():
    """G6: entries of other programs are an alarm, and numbers that begin again are none."""
    whole = PartitionView(length=2, n=2, first=Place("1-0", 1), last=Place("2-0", 2))
    begun_anew = Numbers(Place("2-0", 2), done=True, breaks=((9, 1),))
    strange = Numbers(Place("2-0", 2), done=True, foreign=4)
    views = {1: whole, 2: whole, 3: whole}
    found = list(alarms.foreign_alarms(views, {1: begun_anew, 2: strange}, KEYS))
    assert short(found) == [("foreign_entries", "warning", "p02")]
    assert "4 entries" in found[0].text


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, [("no_append_only_file", "warning", "aof")]),
        ({"aof_enabled": 1}, []),
        (
            {"aof_enabled": 1, "maxmemory_policy": "allkeys-lru"},
            [("eviction_policy", "critical", "allkeys-lru")],
        ),
        (
            {"aof_enabled": 1, "aof_last_write_status": "err"},
            [("persistence", "critical", "aof")],
        ),
        (
            {"aof_enabled": 1, "aof_last_bgrewrite_status": "err"},
            [("persistence", "warning", "aof rewrite")],
        ),
        (
            {"aof_enabled": 1, "rdb_last_bgsave_status": "err"},
            [("persistence", "critical", "snapshot")],
        ),
        (
            {"aof_enabled": 0, "aof_last_write_status": "err"},
            [("no_append_only_file", "warning", "aof")],
        ),
    ],
)
def test_what_the_server_says_of_itself(info, expected):
    """G1: a policy that evicts, a missing file and failed writes are told by INFO's own words."""
    assert short(alarms.server_alarms(health.state_of(info))) == expected


def test_what_is_nearly_full_is_told():
    """G10: a warning from 80 %, critical from 95 %; another's disk is not judged."""
    assert short(alarms.memory_alarms(memory(79))) == []
    assert short(alarms.memory_alarms(memory(80))) == [("memory", "warning", "warning")]
    assert short(alarms.memory_alarms(memory(95))) == [("memory", "critical", "critical")]
    assert short(alarms.memory_alarms(Memory(95, None, "unknown"))) == []
    assert short(alarms.disk_alarms(None)) == []
    assert short(alarms.disk_alarms(Disk(free=1_000, aof=500))) == []
    assert short(alarms.disk_alarms(Disk(1_000, 700))) == [("disk", "warning", "warning")]
    assert short(alarms.disk_alarms(Disk(1_000, 1_000))) == [("disk", "critical", "critical")]


@pytest.mark.parametrize(
    ("info", "left", "expected"),
    [
        ({"used_memory": 3, "maxmemory": 8}, 5, Memory(3, 8, "maxmemory")),
        ({"used_memory": 3, "maxmemory": 0}, 5, Memory(3, 8, "available")),
        ({"used_memory": 3, "total_system_memory": 9}, None, Memory(3, 9, "machine")),
        ({"used_memory": 3}, None, Memory(3, None, "unknown")),
    ],
)
def test_the_limit_of_the_memory(info, left, expected):
    """G10: the limit is maxmemory, else what the machine has, else unknown."""
    assert read_memory(info, left) == expected
    assert ("unknown" in str(expected)) == (expected.limit is None)


def test_what_a_machine_has_left():
    """Linux's figure of available memory is read; other systems have none."""
    assert available_bytes("MemTotal: 9 kB\nMemAvailable:   2 kB\n") == 2048
    assert available_bytes("") is None


def test_a_healthy_server_raises_nothing():
    """G1: the facts of a sound server are the default."""
    assert list(alarms.server_alarms(ServerState())) == []


def archived(**values: object) -> ArchiveStatus:
    """Return how an archive stands that works, but for `values`."""
    return msgspec.structs.replace(ArchiveStatus(working=True, error=""), **values)


def test_an_archive_that_stands_still_is_told():
    """G7, G10: late by minutes is a warning with its reason; a damaged archive is critical."""
    assert short(alarms.archive_alarms(archived(), None)) == []
    assert short(alarms.archive_alarms(archived(), 299.0)) == []
    (late,) = alarms.archive_alarms(archived(working=False, error="no pyarrow"), 301.0)
    assert (late.code, late.severity, "no pyarrow" in late.text) == ("archive", "warning", True)
    (lost,) = alarms.archive_alarms(archived(error="it lacks events", damaged=True), None)
    assert (lost.severity, lost.text) == ("critical", "it lacks events")


def test_what_only_the_archive_has_is_told():
    """G7: numbers that the archive has and Redis never gave are named as ranges, in one finding."""
    views = {
        0: PartitionView(n=5, sealed=5),
        1: PartitionView(n=5, sealed=9),
        2: PartitionView(n=5, sealed=1),
    }
    (alarm,) = alarms.set_back_alarms(views, KEYS)
    assert (alarm.code, alarm.subject) == ("archive_ahead", "p01")
    assert "events 6 to 9" in alarm.text
    later = {0: PartitionView(n=12, sealed=9, set_back=range(6, 10))}
    (alarm,) = alarms.set_back_alarms(views | later, KEYS)
    assert alarm.subject == "p00, p01"
    assert "'ns:{p00}:state' 'ns:{p01}:state'" in alarm.remedy


def test_why_nothing_is_trimmed_is_part_of_the_remedy():
    """G10: memory that runs out says what keeps the archive from helping."""
    (alarm,) = alarms.memory_alarms(memory(3600), "run: pip install 'memorybus[archive]'")
    assert "pip install" in alarm.remedy
    (alarm,) = alarms.memory_alarms(memory(3600))
    assert "hot_window" in alarm.remedy


@pytest.mark.parametrize(
    ("workers", "home", "working", "error"),
    [
        ({}, None, False, "no worker archives"),
        ({"a": ArchiverReport(1)}, None, True, ""),
        ({"a": ArchiverReport(1, error="no disk")}, None, False, "no disk"),
        ({"a": ArchiverReport(1, error="no disk"), "b": ArchiverReport(1)}, None, True, ""),
        (
            {
                "a": ArchiverReport(1, error="it lacks events", damaged=True),
                "b": ArchiverReport(1),
                "c": ArchiverReport(1, error="no disk"),
            },
            None,
            True,
            "it lacks events",
        ),
        (
            {"a": ArchiverReport(1, elsewhere=True)},
            "h in /d",
            False,
            "no worker archives; it lies on h in /d: a worker has to run there",
        ),
        ({"a": ArchiverReport(1, elsewhere=True), "b": ArchiverReport(1)}, "h in /d", True, ""),
    ],
)
def test_whether_the_archive_works(workers, home, *, working, error):
    """G7: one worker that can is enough; else why none does is told."""
    found = build_archive_status({}, ArchiverReports({}, workers), home)
    assert (found.working, found.error, found.home) == (working, error, home)


def test_damage_is_told_though_another_worker_archives():
    """G7: the alarm and the status name what one archiver found, whatever the others do."""
    hurt = ArchiverReport(1, error="p01: it lacks events", damaged=True)
    found = build_archive_status({}, ArchiverReports({}, {"a": hurt, "b": ArchiverReport(1)}), None)
    (alarm,) = alarms.archive_alarms(found, None)
    assert (alarm.severity, alarm.text) == ("critical", "p01: it lacks events")
    assert "p01: it lacks events" in describe_archive(found)
    assert not found.hindered


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
