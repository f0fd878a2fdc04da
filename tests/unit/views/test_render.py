"""Events and states as people read them."""

import io

import pytest
from memorybus.events import (
    EVENT_TYPES,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Envelope,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus.health.finding import Check
from memorybus.surfaces.cli.doctor import checked
from memorybus.surfaces.views.render import event_line, event_name, status_tables, summary
from memorybus.text.times import iso
from rich.console import Console


def printed(*renderables: object, width: int = 160) -> str:
    """Return what a pipe would get."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    for one in renderables:
        console.print(one)
    return console.file.getvalue()


SUMMARIES = [
    (SessionStarted(title="Lens", parent="s0", reason="branch"), "Lens (from s0)"),
    (SessionStarted(), "start"),
    (TurnStarted(message="hello"), "hello"),
    (TurnCompleted(user="hi", assistant="ho"), "user: hi ⏎ assistant: ho"),
    (TurnCompleted(assistant="ho", assistant_name="Bo"), "Bo: ho"),
    (MemoryWritten(action="add", content="x", store="user"), "user + x"),
    (MemoryWritten(action="replace", content="y", old_text="x"), "memory ± “x” y"),
    (MemoryWritten(action="remove", old_text="x"), "memory − “x”"),
    (SessionSwitched(new_id="b", parent="a", reason="branch"), "branch: a → b"),
    (ContextCompressing(compression_count=2), "compression 2, 0 messages leave the window"),
    (Delegated(task="find", result="found"), "find → found"),
    (SessionEnded(), "over"),
    (ToolCalled(provider="holographic", tool="add"), "holographic: add"),
    (
        DeadLetterResolved(provider="mem0", event_id="ab" * 16, action="discard", reason="spam"),
        "mem0: discard abababababab: spam",
    ),
    (
        UnknownEvent(name="Dreamt", wire_version=9, raw=b"\x80"),
        "unknown to this release (version 9), kept as it is",
    ),
]


@pytest.mark.parametrize(("event", "expected"), SUMMARIES)
def test_every_event_is_told_in_one_line(event, expected):
    """Each event says in one line what happened."""
    assert summary(event) == expected


def test_no_event_type_is_forgotten():
    """The table above knows every type there is."""
    assert {type(event) for event, _ in SUMMARIES} == {*EVENT_TYPES, UnknownEvent}


def test_an_event_line_shows_hostile_text_harmlessly():
    """Markup, escape sequences and line breaks of users stay text on one line."""
    envelope = Envelope(
        id="0" * 32,
        key="session:s",
        scope=Scope(),
        session=SessionRef("s\x1b[2J", "s"),
        at=1_700_000_000_000,
        event=TurnCompleted(user="[red]x[/red]\n\x1b]0;pwned\x07"),
    )

    line = printed(event_line(envelope))

    assert line.startswith("2023-11-14T22:13:20.000Z TurnCompleted      s\\x1b[2J")
    assert "user: [red]x[/red] \\x1b]0;pwned\\x07" in line
    assert line.count("\n") == 1
    assert "\x1b" not in line


def test_an_unknown_event_goes_by_its_own_name():
    """What a newer release wrote is called what it calls itself."""
    assert event_name(UnknownEvent(name="Dreamt", wire_version=9, raw=b"")) == "Dreamt"


STATUS = {
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
    "continuity": {"log": "ab", "gaps": [], "losses": []},
    "memory": {
        "used": 3 << 20,
        "limit": 6 << 20,
        "limit_from": "maxmemory",
        "bytes_per_event": 300.0,
        "events_per_hour": 36.0,
        "measured_over": 3600.0,
        "trend": "growing",
        "seconds_left": 864_000.0,
    },
    "disk": None,
    "archive": {"working": False, "error": "no worker archives", "sealed": 0, "unsealed": 3},
}


def test_the_status_says_everything_that_its_json_says():
    """Every value of the JSON form stands in the form for people, made harmless."""
    shown = printed(*status_tables(STATUS))

    spool = "3 events to send, 900 bytes"
    for word in ("unix:///x", "7.2.4", "aof:everysec", spool, "builtin", "15/16"):
        assert word in shown
    assert "h\\x1b" in shown
    for word in ("mb.recall", "2026-01-03", "77 (paused)", "Unavailable: down\\x1b[2J"):
        assert word in shown


def test_the_status_says_how_long_the_memory_lasts():
    """The forecast, its rate and whose limit it is stand in one line (G10)."""
    shown = printed(*status_tables(STATUS), width=300)

    for word in ("3.0 MiB of 6.0 MiB used (maxmemory)", "full in 10 days", "36 events/h"):
        assert word in shown


def test_an_alarm_is_a_red_line_above_all():
    """Data loss comes first, in red, with its remedy, and hostile text in it is harmless (G7)."""
    alarm = {
        "code": "data_loss",
        "severity": "critical",
        "subject": "p03:1",
        "text": "partition p03: events 1 to 4 are gone\x1b[2J",
        "remedy": "stop who trims",
    }

    first, *_ = status_tables(STATUS | {"alarms": [alarm]})

    shown = printed(first)
    assert shown.startswith("DATA LOSS: partition p03: events 1 to 4 are gone\\x1b[2J\n")
    assert "→ stop who trims" in shown
    assert str(first.spans[0].style) == "bold red"


def test_a_provider_whose_calls_fail_says_why_it_waits():
    """G6: what a backend says while it is down stands below the table, safe to look at."""
    status = STATUS | {
        "providers": [STATUS["providers"][0] | {"failing": "Transient: 500 \x1b[31m"}]
    }
    said = printed(*status_tables(status))
    assert "waits: Transient: 500" in said
    assert "\x1b" not in said


def test_a_status_without_workers_says_what_to_do():
    """No worker is not an empty table but a remedy."""
    assert "memorybus up" in printed(*status_tables(STATUS | {"workers": []}))


def test_a_failed_check_carries_its_fix():
    """The remedy stands under the failure, and only there."""
    bad = Check(name="redis", ok=False, found="no answer", fix="run: memorybus up")
    good = Check(name="redis", ok=True, found="answers")
    soon = Check(name="memory", ok=True, found="full in 2 days", fix="make room")

    assert "→ run: memorybus up" in printed(checked(bad))
    assert "→" not in printed(checked(good))
    assert printed(checked(soon)).startswith("! memory")


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (None, None),
        (0, None),
        (-1, None),
        (1 << 62, None),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
    ],
)
def test_times_are_told_in_utc_or_not_at_all(at, expected):
    """An unknown time is null, never 1970."""
    assert iso(at) == expected
