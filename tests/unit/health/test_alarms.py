"""Alarms: each has a code, a subject that lasts as long as it does, and a remedy."""

from collections.abc import Iterable

import msgspec
import pytest
from memorybus.archive.seals import ArchiverReport, ArchiverReports
from memorybus.health import findings as alarms
from memorybus.health import log_health as health
from memorybus.health.finding import Finding
from memorybus.health.findings import ServerState
from memorybus.health.status import (
    ArchiveStatus,
    Disk,
    Memory,
    available_bytes,
    build_archive_status,
    describe_archive,
    read_memory,
)
from memorybus.log.continuity import Gap, Numbers, PartitionView
from memorybus.log.entry import Place
from memorybus.log.losses import lost_gap
from memorybus.redis.keys import Keys

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
