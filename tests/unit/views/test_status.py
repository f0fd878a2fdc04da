"""The status and the doctor's checks as people read them."""

import io

import pytest
from helpers.stories import statuses
from memorybus.health.finding import Check, Finding
from memorybus.health.findings import findings_of
from memorybus.health.monitor import with_published_rate
from memorybus.health.status import LogFigures, Status
from memorybus_console.views.render import check_line
from memorybus_console.views.status import FittedToScreen, status_tables
from msgspec import convert
from rich.console import Console, Group

NOW = 1_767_600_000_000


def printed(*renderables: object, width: int = 160) -> str:
    """Return what a pipe would get."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    for one in renderables:
        console.print(one)
    return console.file.getvalue()


def shown(status: dict[str, object], width: int = 160) -> str:
    """Return a status as a pipe would get it."""
    made = convert(status, Status)
    return printed(*status_tables(made, findings_of(made, ("builtin",), NOW), NOW), width=width)


STATUS = {
    "settings_file": "/srv/memorybus.toml",
    "redis": {"url": "unix:///x", "version": "7.2.4", "durability": "aof:everysec"},
    "spool": {"events": 3, "bytes": 900, "oldest_at": "2026-01-01T00:00:00.000Z"},
    "partitions": 16,
    "providers": [
        {
            "name": "builtin",
            "applied": 7,
            "backlog": 2,
            "oldest_unapplied_at": "2026-01-01T00:00:00.000Z",
            "parked_keys": 1,
            "dead_letters": 4,
            "lanes": 16,
            "lanes_owned": 15,
            "failing": "",
        }
    ],
    "workers": [{"id": "w1", "host": "h\x1b", "pid": 5, "lanes": 15, "heartbeat_at": "2026-01-01"}],
    "jobs": [
        {
            "provider": "mem0",
            "queue": "mb.recall",
            "queued": 1,
            "started": 0,
            "failed": 2,
            "oldest_at": "2026-01-03T00:00:00.000Z",
            "failing": 2,
            "skipped": 77,
            "paused": True,
            "failed_at": "2026-01-02T00:00:00.000Z",
            "error": "Unavailable: down\x1b[2J",
        }
    ],
    "alarms": [],
    "continuity": {"log": "ab", "gaps": []},
    "memory": {
        "used": 3 << 20,
        "limit": 6 << 20,
        "limit_from": "maxmemory",
    },
    "disk": None,
    "archive": {"working": False, "error": "no worker archives", "sealed": 0, "unsealed": 3},
}


def test_the_status_says_everything_that_its_json_says():
    """Every value of the JSON form stands in the form for people, made harmless."""
    text = shown(STATUS)

    spool = "3 unsent events, 900 B"
    file = "Settings: /srv/memorybus.toml"
    for word in (file, "unix:///x", "7.2.4", "aof:everysec", spool, "builtin", "15/16"):
        assert word in text
    assert "h\\x1b" in text
    for word in ("mb.recall", "2 d", "77 (paused)", "Unavailable: down\\x1b[2J"):
        assert word in text


def test_the_server_is_named_by_its_product():
    """A Valkey is not called a Redis."""
    valkey = STATUS["redis"] | {"version": "9.1.2", "product": "Valkey"}

    assert "Valkey 9.1.2 at unix:///x" in shown(STATUS | {"redis": valkey})


def test_what_a_provider_says_of_itself_is_shown():
    """A report stands in a line with the provider's name, made harmless."""
    said = {**STATUS["providers"][0], "reports": "2 of 5 facts have no vector yet\x1b[2J"}

    text = shown(STATUS | {"providers": [said]})

    assert "builtin: 2 of 5 facts have no vector yet\\x1b[2J\n" in text


def test_the_status_says_how_full_the_memory_is():
    """What is used, of how much, and whose limit it is stand in one line (G10)."""
    assert "3.0 MiB of 6.0 MiB used, 50% (maxmemory)" in shown(STATUS, width=300)


def test_an_alarm_is_a_red_line_above_all():
    """Data loss comes first, in red, with its remedy, and hostile text in it is harmless (G7)."""
    alarm = {
        "code": "data_loss",
        "severity": "critical",
        "subject": "p03:1",
        "text": "partition p03: events 1 to 4 are gone\x1b[2J",
        "remedy": "stop who trims",
    }

    first, *_ = status_tables(convert(STATUS, Status), [convert(alarm, Finding)], NOW)

    text = printed(first)
    assert text.startswith("DATA LOSS: partition p03: events 1 to 4 are gone\\x1b[2J\n")
    assert "→ stop who trims" in text
    assert str(first.spans[0].style) == "bold red"


def test_a_provider_whose_calls_fail_says_why_it_waits():
    """G6: what a backend says while it is down stands above the table, safe to look at."""
    status = STATUS | {
        "providers": [STATUS["providers"][0] | {"failing": "Transient: 500 \x1b[31m"}]
    }
    said = shown(status)
    assert "builtin is failing: Transient: 500" in said
    assert "\x1b" not in said


def test_a_status_without_workers_says_what_to_do():
    """No worker is not an empty table but a remedy."""
    assert "memorybus up" in shown(STATUS | {"workers": []})


def test_a_failed_check_carries_its_fix():
    """The remedy stands under the failure, and only there."""
    bad = Check(name="redis", ok=False, found="no answer", fix="run: memorybus up")
    good = Check(name="redis", ok=True, found="answers")
    soon = Check(name="memory", ok=True, found="full in 2 days", fix="make room")

    assert "→ run: memorybus up" in printed(check_line(bad))
    assert "→" not in printed(check_line(good))
    assert printed(check_line(soon)).startswith("! memory")


def test_rates_and_the_time_to_go_are_told():
    """What is published and applied a second, and how long the backlog takes at that rate."""
    behind = {**STATUS["providers"][0], "rate": 1234.5, "backlog": 9_000, "seconds_left": 7_300.0}
    text = shown(STATUS | {"providers": [behind], "published_rate": 3.25})

    assert "events published, 3.2 events/s\n" in text
    assert "1,234" in text
    assert " 2 h " in text


@pytest.mark.parametrize(("grown", "rate"), [(10, 5.0), (0, 0.0), (-7, 0.0)])
def test_a_rate_is_what_came_between_two_looks(grown, rate):
    """A log that was lost meanwhile has no negative rate."""
    before, now = (statuses.status(log=LogFigures(published=100 + n)) for n in (0, grown))

    assert with_published_rate(before, now, 2.0).published_rate == rate


def test_a_watched_status_fits_a_small_terminal():
    """On 24 lines of 80 columns a finding is one line, and every table is there, not folded."""
    named = [{**STATUS["providers"][0], "name": name} for name in ("builtin", "holographic")]
    status = convert(
        STATUS | {"providers": named, "memory": {**STATUS["memory"], "used": 6 << 20}}, Status
    )
    findings = findings_of(status, ("builtin", "holographic"), NOW)
    parts = status_tables(status, findings, NOW, remedies=False)
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)

    lines = console.render_lines(FittedToScreen(Group(*parts)), console.options.update(height=24))
    screen = ["".join(segment.text for segment in line).rstrip() for line in lines]

    assert len(findings) > 3
    assert len(screen) <= 24
    assert all(len(line) <= 80 for line in screen)
    for finding in findings:
        begin = f"{finding.severity.upper()}: {finding.text[:50]}"
        assert sum(line.startswith(begin) for line in screen) == 1
    for head in ("provider     backlog", "worker  host", "queue  ", "Archive: "):
        assert any(line.startswith(head) for line in screen)
    assert "what to do: memorybus status" in "\n".join(screen)
    assert "more line" not in "\n".join(screen)
