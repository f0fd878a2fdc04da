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
from memorybus.recall.model import RecalledItem
from memorybus.text.display import iso
from memorybus_console.operations.demo import DemoResult
from memorybus_console.views.demo import show_result
from memorybus_console.views.events import event_line, event_name, summary
from memorybus_console.views.output import Output
from memorybus_console.views.recall import age, memory_details, recalled_table
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


BLOCK = "<memory-context>\nFrom files:\n- the lens turns by hand\n</memory-context>"


def test_in_a_pipe_the_block_is_as_wide_as_its_text(capsys):
    """G10: a pipe has no width, and what is recalled is framed no wider than it needs."""
    result = DemoResult(
        published=3,
        applied={"files": 3},
        caught_up={"files": 0.1},
        recalled=BLOCK,
        publish=0.001,
        answer=0.2,
        again=0.01,
    )
    show_result(Output(json=False), result)
    framed = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith(("╭", "│", "╰"))
    ]
    assert len(framed) == len(BLOCK.splitlines()) + 2
    assert {len(line) for line in framed} == {max(map(len, BLOCK.splitlines())) + 4}


NOW = 1_800_000_000_000
DAY = 86_400_000
EVENT = "0198f2c45b1e7a3c9d0e1f2a3b4c5d6e"


def printed_recall(renderable: object, width: int = 80) -> str:
    """Return what a terminal of this width would show."""
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("past", "shown"),
    [
        (0, "now"),
        (3_599_999, "now"),
        (3_600_000, "1 h"),
        (DAY, "1 d"),
        (29 * DAY, "29 d"),
        (61 * DAY, "2 mo"),
        (800 * DAY, "2 y"),
        (-DAY, "now"),
    ],
)
def test_an_age_has_its_largest_unit(past, shown):
    """An age is told in the largest unit that fits; a time in the future is now."""
    assert age(NOW - past, NOW) == shown


def test_an_unknown_time_has_no_age():
    """A memory without a time shows a dash."""
    assert age(None, NOW) == "-"


def test_a_table_fits_eighty_columns_and_cuts_nothing():
    """Provider, age and the whole text stand within the width of a terminal."""
    text = " ".join(f"word{number}" for number in range(60))
    one = RecalledItem("holographic", text, "chat", NOW - 3 * DAY)

    shown = printed_recall(recalled_table([one], NOW))

    assert max(map(len, shown.splitlines())) <= 80
    assert "holographic" in shown
    assert "3 d" in shown
    assert [word for word in shown.split() if word.startswith("word")] == text.split()


def test_an_explanation_names_what_matched_and_the_event():
    """Why a memory was found is told by words, meaning, the score's parts, and its event."""
    one = RecalledItem(
        "holographic", "The inspector comes on Friday.", "chat", NOW, "", speaker="Ana",
        event=EVENT, score=4.25, matched=("inspector", "comes"), meaning=0.5,
        parts={"words": 2.125, "speaker": 2.0},
    )  # fmt: skip

    shown = printed_recall(memory_details(1, one), width=120)

    assert "1. holographic · Ana · 2027-01-15T08:00:00.000Z · chat" in shown
    assert "matched  inspector, comes" in shown
    assert "meaning  0.50 of 1" in shown
    assert "score    4.25 (words 2.12, speaker 2)" in shown
    assert f"event    {EVENT}: memorybus events get {EVENT}" in shown


def test_what_a_provider_does_not_tell_is_left_out():
    """A memory of a provider that explains nothing shows no empty reasons."""
    shown = printed_recall(memory_details(1, RecalledItem("mem0", "Likes tea.", "", None)))

    assert shown.split() == ["1.", "mem0", "Likes", "tea."]


def test_hostile_text_steers_no_terminal():
    """Escape sequences in a memory, its words or its speaker are shown as escapes."""
    bad = "\x1b[31mred"
    one = RecalledItem("p", bad, bad, NOW, bad, speaker=bad, matched=(bad,), parts={bad: 1.0})

    assert "\x1b" not in printed_recall(memory_details(1, one)) + printed_recall(
        recalled_table([one], NOW)
    )
