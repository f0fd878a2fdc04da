"""Events as people read them."""

import io

import pytest
from memorybus.events import (
    EVENT_TYPES,
    CanarySent,
    ContextCompressing,
    DeadLetterResolved,
    Delegated,
    Derived,
    Envelope,
    MemoryCurated,
    MemoryWritten,
    OperatorActed,
    Recalled,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    ShownMemories,
    ToolCalled,
    TurnCompleted,
    TurnStarted,
    UnknownEvent,
)
from memorybus.text.display import iso
from memorybus_console.views.events import event_line, event_name, summary
from rich.console import Console


def printed(*renderables: object, width: int = 160) -> str:
    """Return what a pipe would get."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    for one in renderables:
        console.print(one)
    return console.file.getvalue()


SUMMARIES = [
    (CanarySent(), "memorybus doctor checks whether events come through"),
    (
        OperatorActed(act="retry", operator="ann", reason="mended", about={"of": "mem0"}),
        "ann: retry mem0: mended",
    ),
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
    (Derived(kind="fact", text="Ann rows.", deriver="m"), "fact by m: Ann rows."),
    (
        MemoryCurated(memory="0a" * 7, before="active", after="stale", reason="not used"),
        "0a0a0a0a0a0a0a: active → stale, not used",
    ),
    (
        DeadLetterResolved(provider="mem0", event_id="ab" * 16, action="discard", reason="spam"),
        "mem0: discard abababababab: spam",
    ),
    (
        Recalled(memories=(ShownMemories("mem0", "late", ("", "")),)),
        "given to a prompt: 2 of mem0 (late)",
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
