"""The verdict: one line, an exit code, and what it makes of each finding."""

from typing import Any

import pytest
from helpers.stories.statuses import provider, status
from memorybus.errors import LogUnavailable
from memorybus.health.finding import Finding
from memorybus.health.findings import findings_of
from memorybus.health.monitor import host_spools, rate_of
from memorybus.health.status import (
    ArchiveStatus,
    HostSpool,
    ProviderStatus,
    SpoolStatus,
    Status,
    WorkerStatus,
)
from memorybus.health.verdict import judge_status, unknown_verdict, unreachable_verdict
from memorybus.receipt import SpoolStats
from memorybus.registry.roster import WorkerInfo
from memorybus.text.display import iso

NOW = 1_700_000_000_000
BEGAN = "2023-11-14T22:00:00.000Z"


def alive(*releases: str) -> list[WorkerStatus]:
    """Return live workers of some releases."""
    return [WorkerStatus(f"w{n}", "h", n, 16, "", release) for n, release in enumerate(releases)]


def well(*providers: ProviderStatus, **changed: Any) -> Status:
    """Return the status of a bus of which nothing is wrong but `changed`."""
    sound = {"workers": alive("1.0"), "archive": ArchiveStatus(working=True), "alarms": []}
    return status(*(providers or (provider(),)), **sound | changed)


def late(seconds: float, **changed: Any) -> ProviderStatus:
    """Return a provider whose oldest event waits for so long."""
    since = iso(round(NOW - seconds * 1000))
    return provider(backlog=50, oldest_unapplied_at=since, **changed)


@pytest.mark.parametrize(
    ("one", "code", "said"),
    [
        (well(), 0, "MEMORYBUS OK - 1 worker, 1 provider, 0 events | workers=1"),
        (well(provider(paused="upgrade")), 1, "MEMORYBUS WARNING - p is paused: upgrade"),
        (
            well(provider(dead_letters=3, parked_keys=1, refused=1, waiting_behind=2)),
            2,
            "CRITICAL - p: 1 event refused, 2 behind",
        ),
        (well(provider(lanes_owned=3)), 2, "CRITICAL - p has lanes without an owner"),
        (well(archive=ArchiveStatus()), 1, "WARNING - nothing is trimmed"),
        (well(workers=[]), 2, "CRITICAL - no worker is alive"),
    ],
)
def test_the_worst_finding_is_the_exit_code(one, code, said):
    """G10: monitoring plugins read a state, a text and figures from one line, and its number."""
    found = judge_status(one, ("p",), NOW)
    assert found.code == code
    assert said in found.line
    assert "\n" not in found.line


def test_what_is_critical_is_said_first():
    """G10: a line that is cut on a phone still has the worst."""
    alarms = [Finding("foreign_entries", "warning", "p01", "4 entries", "find who")]
    found = judge_status(well(provider(dead_letters=1), alarms=alarms), (), NOW)
    assert [one.severity for one in found.findings] == ["critical", "warning"]


def test_hostile_text_stays_in_its_line():
    """G9: what a backend says forges neither a line nor figures, and has no credentials."""
    one = provider(failing="x\nMEMORYBUS OK | workers=9 redis://u:secret@h")
    line = judge_status(well(one), (), NOW).line
    assert line.count("\n") == 0
    assert line.count("|") == 1
    assert "secret" not in line
    assert line.startswith("MEMORYBUS CRITICAL - ")


def test_no_answer_is_critical_and_no_look_unknown():
    """G9: a Redis that is away is an incident, with what waits; wrong settings are none."""
    away = unreachable_verdict(LogUnavailable("redis is away"), SpoolStatus(7, 900, BEGAN))
    assert (away.code, away.state) == (2, "CRITICAL")
    assert "7 unsent events in spools" in away.line
    assert [finding.since for finding in away.findings] == [BEGAN]
    assert unknown_verdict(ValueError("no such setting")).code == 3


@pytest.mark.parametrize(("code", "subject"), [("read_only", "redis"), ("persistence", "aof")])
def test_a_refusal_began_with_the_first_event_that_waits(code, subject):
    """G9: since when Redis refuses writes is known from what this host could not send."""
    refusal = Finding(code, "critical", subject, "it takes no writes", "make room")
    other = Finding("foreign_entries", "warning", "p01", "4 entries", "find who")
    status = well(provider(), alarms=[refusal, other], spool=SpoolStatus(7, 900, BEGAN))
    since = {one.code: one.since for one in judge_status(status, (), NOW).findings}
    assert since == {code: BEGAN, "foreign_entries": None}


@pytest.mark.parametrize(
    ("one", "severity", "said"),
    [
        (late(61, rate=0.0), "critical", "no progress"),
        (late(59, rate=0.0), "", ""),
        (late(299, rate=2.0), "", ""),
        (late(301, rate=2.0, seconds_left=25.0), "warning", "2 events/s are applied, ETA 25 s"),
        (late(301), "warning", "backlog 50, the oldest event 301 s old"),
        (late(301, rate=0.0, failing="down"), "", ""),
        (late(301, rate=0.0, paused="upgrade"), "", ""),
        (late(301, rate=0.0, lanes_owned=0), "", ""),
    ],
)
def test_who_is_late_is_told_with_its_pace(one, severity, said):
    """G10: what stands still is critical, what is slow a warning; a known cause is told alone."""
    found = [f for f in findings_of(well(one), ("p",), NOW) if f.code == "behind"]
    assert [f.severity for f in found] == ([severity] if severity else [])
    assert said in "".join(f.text for f in found)


@pytest.mark.parametrize(
    ("backlog", "busiest", "lanes", "told"),
    [
        (2_000, 1_900, 16, True),
        (2_000, 1_500, 16, False),
        (900, 900, 16, False),
        (2_000, 2_000, 1, False),
    ],
)
def test_a_hot_lane_is_told(backlog, busiest, lanes, told):
    """G3: a key that is busier than its provider cannot be helped by workers: that is said."""
    one = provider(
        backlog=backlog, busiest="p07", busiest_backlog=busiest, lanes=lanes, lanes_owned=lanes
    )
    found = [f for f in findings_of(well(one), ("p",), NOW) if f.code == "hot_lane"]
    assert bool(found) is told
    assert all("p07" in f.text for f in found)


def test_a_dead_backend_says_what_waits_for_it():
    """G6: a backend that is down says what waits, and since when its calls fail."""
    one = late(999, failing="Unavailable: down", failing_since=iso(NOW - 7_000))
    (found,) = findings_of(well(one), ("p",), NOW)
    assert (found.code, found.severity) == ("failing", "critical")
    assert "backlog 50" in found.text
    assert found.since == iso(NOW - 7_000)


def test_spools_of_other_hosts_and_old_workers_are_told():
    """G9, G10: what waits elsewhere for Redis is named by its host; so is a half-done upgrade."""
    waiting = SpoolStatus(3, 100, iso(NOW - 90_000))
    hosts = [HostSpool("far", waiting), HostSpool("here", SpoolStatus(0, 0, None))]
    found = findings_of(well(spools=hosts, workers=alive("1.0", "1.1", "")), ("p",), NOW)
    assert [(one.code, one.severity) for one in found] == [
        ("spool", "warning"),
        ("versions", "warning"),
    ]
    assert "far: 3 unsent events" in found[0].text
    assert "1 of 1.1, 1 of an older one" in found[1].text


def test_what_workers_tell_is_summed_by_provider_and_by_host():
    """G10: rates of all workers add up; several workers of a host tell of one spool directory."""

    def info(name: str, **said: Any) -> WorkerInfo:
        return WorkerInfo(name, "far", 1, 0, 0, (), 0, **said)

    told = [info("a", rates={"p": 2.5}), info("b", rates={"p": 1.0, "q": 4.0}), info("old")]
    assert (rate_of("p", told), rate_of("z", told), rate_of("p", [info("old")])) == (3.5, 0.0, None)
    spools = host_spools([info("a", spool=SpoolStats(2, 9, 1000))], "here", SpoolStatus(0, 0, None))
    assert [(one.host, one.spool.events) for one in spools] == [("far", 2), ("here", 0)]
