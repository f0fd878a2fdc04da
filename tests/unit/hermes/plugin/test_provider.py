"""The memory provider of Hermes, hook by hook, with Redis away: what is published, and as whose."""

import inspect
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk, told
from helpers.processes.forked import in_child
from memorybus.agent.session import Session
from memorybus.errors import SpoolError
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.text.fence import line
from memorybus_hermes import problems
from memorybus_hermes.plugin.provider import HermesMemory


@pytest.fixture(name="host")
def _host() -> Iterator[Host]:
    with hermes_host() as host:
        yield host


NEW = {"reset": True, "reason": "new_session"}
"""How Hermes calls a switch to a new conversation."""


def turn(memory: HermesMemory, text: str, session_id: str, *, number: int = 0) -> None:
    """Have a turn as Hermes has it."""
    memory.on_turn_start(number, text)
    memory.sync_turn(text, text.upper(), session_id=session_id, messages=talk(text))


def test_a_turn_is_published_once(host):
    """G2: the same turn delivered twice, also by a second instance, is one event."""
    memory = host.instance("s1", user_id="ann", user_name="Ann")
    turn(memory, "hello", "s1")
    again = host.instance("s1", user_id="ann", user_name="Ann")
    turn(again, "hello", "s1")
    (started,) = host.events(SessionStarted)
    (completed,) = host.events(TurnCompleted)
    assert completed.scope == Scope(agent="coder", user="ann", platform="cli")
    assert completed.session == started.session
    assert told(completed.event) | {"messages": ()} == told(
        TurnCompleted(user="hello", assistant="HELLO", user_name="Ann", ordinal=0)
    )
    assert completed.event.messages == tuple(talk("hello"))


def test_turns_are_numbered_within_the_transcript(host):
    """G2: the same words later in a session are another turn."""
    memory = host.instance("s1")
    for count in (1, 2, 3):
        memory.sync_turn("ok", "OK", session_id="s1", messages=talk(*["ok"] * count))
    assert [e.event.ordinal for e in host.events(TurnCompleted)] == [0, 1, 2]


@pytest.mark.parametrize(
    "told",
    [
        {"agent_context": "cron"},
        {"agent_context": "subagent"},
        {"agent_context": "flush"},
        {"platform": "cron"},
        {"platform": "subagent"},
    ],
)
def test_other_contexts_are_silent(host, told):
    """A scheduled run, a sub-agent and a flush neither write nor read."""
    memory = host.instance("s1", **told)
    turn(memory, "hello", "s1")
    memory.on_memory_write("add", "memory", "x", {})
    memory.on_pre_compress(talk("x"))
    memory.on_session_end([])
    assert memory.prefetch("hello") == ""
    assert json.loads(memory.handle_tool_call("t", {}))["ok"] is False
    assert host.events() == []


def test_a_session_s_details_are_published(host):
    """All that Hermes tells of a session is in its beginning, but callbacks and what is elsewhere.

    So it is in that of a session whose hooks come before the switch that leads there.
    """
    chat = {"chat_id": "7", "thread_id": "", "gateway_session_key": "agent:main:telegram:dm:7"}
    memory = host.instance(
        "s1", user_id="ann", user_name=" Ann ", session_title="T", warning_callback=print, **chat
    )
    turn(memory, "hello", "s2")
    first, second = (envelope.event.details for envelope in host.events(SessionStarted))
    assert first == {
        "cwd": str(Path.cwd()),
        "user_name": "Ann",
        "chat_id": "7",
        "gateway_session_key": "agent:main:telegram:dm:7",
    }
    assert second == first
    (completed,) = host.events(TurnCompleted)
    assert completed.event.user_name == "Ann"


def test_scaffolding_alone_is_no_turn(host):
    """A bare skill invocation and an empty answer are skipped, as Hermes skips them."""
    memory = host.instance("s1")
    memory.sync_turn("[IMPORTANT: The user has invoked the x", "done", session_id="s1")
    memory.sync_turn("hello", "  ", session_id="s1")
    assert host.events(TurnCompleted) == []


def test_a_background_task_s_turn_is_marked(host):
    """What Hermes said to itself is kept, for the answer's sake, and not taken for the person."""
    memory = host.instance("s1")
    memory.sync_turn("[ASYNC DELEGATION COMPLETE — d1]\nfound", "I found it", session_id="s1")
    (completed,) = host.events(TurnCompleted)
    assert completed.event.synthetic


def test_recalled_memory_is_not_remembered(host):
    """The fence that Hermes keeps beside a message never comes back as something said."""
    memory = host.instance("s1")
    messages = talk("hello")
    messages[0]["api_content"] = "hello\n\n<memory-context>\n- likes tea\n</memory-context>"
    memory.sync_turn("hello", "HELLO", session_id="s1", messages=messages)
    (completed,) = host.events(TurnCompleted)
    assert "likes tea" not in str(completed)


def test_a_turn_too_large_is_shortened_not_lost():
    """G10: outputs are left out first, then the texts are shortened and say so."""
    with hermes_host(event_max_bytes=20_000) as host:
        memory = host.instance("s1")
        large = [*talk("hello"), {"role": "tool", "content": "x" * 500_000}]
        memory.sync_turn("hello", "HELLO", session_id="s1", messages=large)
        memory.sync_turn("y" * 50_000, "z" * 50_000, session_id="s1", messages=None)
        first, second = host.events(TurnCompleted)
        assert first.event.user == "hello"
        assert "characters left out" in str(first.event.messages)
        assert second.event.user.startswith("yyy")
        assert "characters left out" in second.event.user


def test_a_batch_of_writes_is_counted(host):
    """Writes of one tool call come as several hooks under one id: each is its own event."""
    memory = host.instance("s1", user_id="ann")
    call = {"tool_call_id": "c1", "session_id": "s1", "write_origin": "assistant_tool"}
    memory.on_memory_write("add", "memory", "one", call)
    memory.on_memory_write("replace", "user", "two", call | {"old_text": "old"})
    memory.on_memory_write("remove", "user", "", call | {"old_text": "gone"})
    writes = host.events(MemoryWritten)
    assert [(w.event.action, w.event.store, w.event.content, w.event.old_text) for w in writes] == [
        ("add", "memory", "one", ""),
        ("replace", "user", "two", "old"),
        ("remove", "user", "", "gone"),
    ]
    assert [w.key for w in writes] == ["store:coder:memory", "store:ann:user", "store:ann:user"]
    assert writes[0].event.provenance["write_origin"] == "assistant_tool"


def test_the_whole_old_entry_tells_which_was_meant(host):
    """What the tool found and took away is known better than the part that the model named."""
    memory = host.instance("s1", user_id="ann")
    call = {"tool_call_id": "c1", "old_text": "tea", "previous_content": "Likes green tea."}
    memory.on_memory_write("replace", "user", "Likes coffee.", call)
    memory.on_memory_write("remove", "user", "", call)
    writes = [e.event for e in host.events(MemoryWritten)]
    assert {w.old_text for w in writes} == {"Likes green tea."}
    assert all("previous_content" not in w.provenance for w in writes)


def test_an_end_within_a_compression_is_none(host):
    """In place: end and switch belong to the compression; the epoch grows, and nothing ended."""
    memory = host.instance("s1")
    window = talk("hello")
    memory.on_pre_compress(window)
    memory.on_session_end(window)
    memory.on_session_switch("s1", parent_session_id="s1", reset=False, reason="compression")
    turn(memory, "hello", "s1")
    assert host.events(SessionEnded) == []
    assert [e.session.epoch for e in host.events(TurnCompleted)] == [1]
    (compressing,) = host.events(ContextCompressing)
    assert compressing.event.messages == tuple(window)


COMPRESSED = [("on_pre_compress", talk("hello")), ("on_session_end", talk("hello"))]
OLD_ENDS = ("queue", "on_session_end", talk("hello"))
ENDS: dict[str, tuple[list[tuple[Any, ...]], list[tuple[str, int]]]] = {
    "an aborted compression swallows no later end, on whichever thread it comes": (
        [
            *COMPRESSED,  # the same thread, the same messages: perhaps it goes on
            ("shutdown",),
            ("on_pre_compress", talk("hello")),
            ("queue", "on_session_end", [*talk("hello"), {}]),
        ],
        [("s1", 2), ("s1", 3)],
    ),
    "a compression that Hermes refuses without a word ends nothing": (
        [*COMPRESSED, *COMPRESSED, ("on_turn_start", 0, "go on")],
        [],
    ),
    "a compression that an undo follows ends nothing": (
        [*COMPRESSED, ("on_session_switch", "s1", "s1", {"rewound": True}), ("shutdown",)],
        [],
    ),
    "the end after a refused compression is one": (
        [*COMPRESSED, ("on_session_end", talk("hello", "go on")), ("shutdown",)],
        [("s1", 4)],
    ),
    "an end that looked like a compression's is one if a new conversation follows": (
        [*COMPRESSED, ("on_session_switch", "s2", "s1", NEW)],
        [("s1", 2)],
    ),
    "of two /new in a row the second overtakes the first one's end": (
        [
            ("on_pre_compress", talk("summary", "hello")),
            ("on_session_end", talk("summary", "hello")),
            ("on_session_switch", "s3", "s2", NEW),
            OLD_ENDS,
            ("queue", "on_session_switch", "s2", "s1", NEW),
        ],
        [("s1", 2)],
    ),
    "the /new race: the old session's end comes in the midst of a compression": (
        [
            ("hint", "new"),
            ("on_turn_start", 1, "fresh"),
            ("on_pre_compress", talk("fresh")),
            OLD_ENDS,
            ("queue", "on_session_switch", "new", "s1", NEW),
            ("on_session_end", talk("fresh")),
            ("on_session_switch", "new", "new", {"reason": "compression"}),
        ],
        [("s1", 2)],
    ),
}
"""Hooks, those of Hermes's queue marked; and the ends that they leave, with their messages."""


@pytest.mark.parametrize("course", ENDS)
def test_a_session_ends_once_and_never_within_a_compression(course, host):
    """What Hermes calls an end is one only if nothing goes on after it."""
    hooks, ends = ENDS[course]
    memory = host.instance("s1")
    with ThreadPoolExecutor(1) as queue:
        for step in hooks:
            name, *words = step[1:] if step[0] == "queue" else step
            if name == "hint":
                host.hint = words[0]
                continue
            more: dict[str, Any] = {}
            if name == "on_session_switch":
                words, more = words[:1], {"parent_session_id": words[1], **words[2]}
            hook = partial(getattr(memory, name), *words, **more)
            queue.submit(hook).result() if step[0] == "queue" else hook()
    found = [(e.session.id, e.event.message_count) for e in host.events(SessionEnded)]
    assert found == ends


def test_a_compression_under_a_new_id_keeps_the_root(host):
    """Not in place: the session goes on under another id of the same lineage."""
    memory = host.instance("s1")
    memory.on_pre_compress(talk("hello"))
    memory.on_session_end(talk("hello"))
    memory.on_session_switch("s2", parent_session_id="s1", reason="compression")
    turn(memory, "go on", "s2")
    (completed,) = host.events(TurnCompleted)
    assert (completed.session.id, completed.session.root) == ("s2", "s1")


def test_undo_begins_the_next_epoch(host):
    """A turn said again after /undo is another turn, in the same session."""
    memory = host.instance("s1")
    turn(memory, "hello", "s1")
    memory.on_session_switch("s1", parent_session_id="", reset=False, rewound=True)
    turn(memory, "hello", "s1")
    assert [e.session.epoch for e in host.events(TurnCompleted)] == [0, 1]


def test_a_new_session_that_comes_before_its_switch(host):
    """The /new race: every hook is its own session's; the late switch adds no root and no epoch."""
    memory = host.instance("old")
    turn(memory, "hello", "old")
    host.hint = "new"
    memory.on_turn_start(1, "fresh")
    memory.on_delegation("task", "result", child_session_id="child")
    memory.on_memory_write("add", "memory", "x", {"session_id": "new", "tool_call_id": "c"})
    memory.on_session_end(talk("hello"))
    memory.on_session_switch("new", parent_session_id="old", reset=True, reason="new_session")
    memory.sync_turn("fresh", "FRESH", session_id="new", messages=talk("fresh"))
    assert [e.session.id for e in host.events(TurnCompleted)] == ["old", "new"]
    assert [e.session.id for e in host.events(MemoryWritten, Delegated)] == ["new", "new"]
    assert [e.session.id for e in host.events(SessionEnded)] == ["old"]
    (switched,) = host.events(SessionSwitched)
    assert (switched.event.parent, switched.event.reason) == ("old", "reset")
    fresh = [e.session for e in host.events() if e.session.id == "new"]
    assert {(ref.root, ref.epoch) for ref in fresh} == {("new", 0)}


def test_a_system_prompt_is_its_own_session_s(host, monkeypatch):
    """Hermes asks before the turn and the switch; a compression's thread may have an old hint."""
    monkeypatch.setattr(Session, "system_prompt", lambda session, **_: f"of {session.id}")
    memory = host.instance("old")
    host.hint = "new"
    assert "of new" in memory.system_prompt_block()
    memory.on_turn_start(1, "fresh")
    memory.on_session_switch("new", parent_session_id="old", reset=True, reason="new_session")
    host.hint = "old"
    memory.on_pre_compress(talk("fresh"))
    assert "of new" in memory.system_prompt_block()


def test_a_switch_delivered_twice_is_one(host):
    """G2: the same /new again begins nothing anew."""
    memory = host.instance("old")
    for _ in range(2):
        memory.on_session_switch("new", parent_session_id="old", reset=True, reason="new_session")
    (switched,) = host.events(SessionSwitched)
    assert switched.session.epoch == 0


def test_branch_and_resume_keep_their_lineage(host):
    """/branch forks the lineage; /resume goes back to a session as it was left."""
    memory = host.instance("s1")
    memory.on_session_switch("s2", parent_session_id="s1", reset=False, reason="branch")
    turn(memory, "in the branch", "s2")
    memory.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    turn(memory, "back", "s1")
    branch, back = host.events(TurnCompleted)
    assert (branch.session.id, branch.session.parent, branch.session.root) == ("s2", "s1", "s1")
    assert (back.session.id, back.session.root, back.session.epoch) == ("s1", "s1", 0)


def test_a_restart_goes_on_where_it_was(host):
    """A gateway's next instance of a session knows its epoch, also in another process."""
    memory = host.instance("s1")
    memory.on_session_switch("s1", rewound=True)
    fresh = HermesMemory(settings=lambda _: host.settings, process=type(host.process)())
    fresh.initialize("s1", **host.told())
    shared = fresh._process.shared(host.settings)
    try:
        scope = host.events()[0].scope
        assert shared.session(scope, "s1").ref.epoch == 1
    finally:
        shared.bus.close(0.1)
    assert len(host.events(SessionStarted)) == 1


def test_two_persons_in_one_process_never_mix(host):
    """A gateway's instances share a bus and nothing else, even if their session ids are equal."""
    ann = host.instance("s1", user_id="ann", platform="telegram")
    ben = host.instance("s1", user_id_alt="ben", platform="telegram")
    turn(ann, "I like tea", "s1")
    turn(ben, "I like coffee", "s1")
    ann.on_session_switch("s1", rewound=True)
    turn(ben, "and cake", "s1")
    found = [(e.scope.user, e.event.user, e.session.epoch) for e in host.events(TurnCompleted)]
    assert found == [("ann", "I like tea", 0), ("ben", "I like coffee", 0), ("ben", "and cake", 0)]


def test_no_hook_raises(host):
    """G9: what Hermes hands over in error is counted and said once, never raised into it."""
    memory = host.instance("s1")
    odd: Any = object()
    memory.on_turn_start(0, odd)
    memory.sync_turn(odd, odd)
    memory.on_memory_write("merge", "memory", "x", {})
    memory.on_memory_write("merge", "memory", "x", {})
    memory.on_session_switch(odd, parent_session_id=odd)
    memory.on_delegation(odd, odd)
    assert memory.on_pre_compress(odd) == ""
    assert host.shared.problems.count >= 5
    (write,) = [p for p in problems.read(host.settings) if p.hook == "on_memory_write"]
    assert "merge" in write.error


def test_what_must_be_saved_and_is_not_is_refused():
    """G1: where Hermes requires a checkpoint it is told of a failure, and keeps its messages."""
    with hermes_host(spool_max_bytes=2_000) as host:
        memory = host.instance("s1")
        window = talk("x" * 5_000)
        assert memory.on_pre_compress(window) == ""
        with pytest.raises(SpoolError, match="not saved"):
            memory.on_pre_compress(window, require_checkpoint=True)
        silent = host.instance("s2", agent_context="cron")
        with pytest.raises(SpoolError, match="not saved"):
            silent.on_pre_compress(talk("x"), require_checkpoint=True)


def test_checkpoints_are_offered_where_hermes_demands_them(host):
    """Those of version 2 lack the tools' messages: who does not ask for them gets all."""
    memory = host.instance("s1")
    assert memory.pre_compress_checkpoint_api_version == 1
    (host.home / "config.yaml").write_text("compression:\n  checkpoint_required: true\n")
    assert memory.pre_compress_checkpoint_api_version == 2


def test_an_inspection_leaves_no_trace(host):
    """Who only shows prompt and tools begins no session, and later hooks publish nothing."""
    memory = host.instance()
    memory.initialize_for_inspection("s1", **host.told())
    turn(memory, "hello", "s1")
    assert (memory.get_tool_schemas(), memory.prefetch("hello")) == ([], "")
    assert memory.system_prompt_block()
    assert not host.settings.data_dir.exists()


def test_how_much_was_recalled_is_shown(host, monkeypatch):
    """The items of the last turn's recall are counted, never those of a turn before."""
    memory = host.instance("s1")
    lines = [line("likes tea"), line("a note\nof two lines")]
    monkeypatch.setattr(Session, "recalled_lines", lambda *_, **__: [("holo", lines)])
    assert memory.recall_status() is None
    assert memory.prefetch("hello")
    status = memory.recall_status()
    assert status is not None
    assert (status.provider_label, status.count) == ("memorybus", 2)
    assert memory.prefetch("said already") == ""
    assert memory.recall_status() is None


def test_a_full_spool_is_loud_once(caplog):
    """G10: what is refused is counted each time, and logged as an error the first time."""
    with hermes_host(spool_max_bytes=2_000) as host, caplog.at_level(logging.ERROR):
        memory = host.instance("s1")
        for number in range(20):
            memory.sync_turn(f"hello {number}", "x" * 300, session_id="s1")
        assert len([r for r in caplog.records if "SpoolFull" in r.message]) == 1
        assert host.shared.problems.count > 10


def test_what_hermes_asks_before_a_start(host):
    """Availability and tools need neither Redis nor a session, and the note is static."""
    memory = host.instance()
    assert memory.is_available()
    assert memory.get_tool_schemas() == []
    assert memory.system_prompt_block() == host.instance("s1").system_prompt_block()
    assert memory.name == "memorybus"
    memory = host.instance()
    assert json.loads(memory.handle_tool_call("t", {}))["ok"] is False


def test_a_wrong_setting_switches_memory_off_loudly(host, caplog):
    """Hermes would do it without a word."""
    (host.home / "memorybus.toml").write_text("urll = 'x'\n")
    memory = HermesMemory(home=host.home)
    assert not memory.is_available()
    assert "urll" in caplog.text
    assert "urll" in memory.unavailable_reason()
    assert host.instance().unavailable_reason() == ""


def test_a_start_that_failed_is_tried_again(host):
    """A disk that was full when the session began: memory comes back without a restart."""
    (host.settings.data_dir).write_text("in the way")
    memory = host.instance("s1")
    turn(memory, "lost", "s1")
    host.settings.data_dir.unlink()
    memory._tried = float("-inf")
    turn(memory, "kept", "s1")
    assert [e.event.user for e in host.events(TurnCompleted)] == ["kept"]


@pytest.mark.slow(reason="forks a process")
def test_a_forked_child_goes_on(host):
    """After a fork hooks publish through a spool of the child's own."""
    memory = host.instance("s1")
    turn(memory, "parent", "s1")

    def child() -> None:
        turn(memory, "child", "s1")
        assert memory._shared
        assert memory._shared.problems.count == 0

    in_child(child)
    assert len(list(host.settings.spool_dir.glob("*.db"))) == 2


SIGNATURES = {
    "on_turn_start": ["turn_number", "message"],
    "prefetch": ["query", "session_id"],
    "queue_prefetch": ["query", "session_id"],
    "sync_turn": ["user_content", "assistant_content", "session_id", "messages"],
    "handle_tool_call": ["tool_name", "args"],
    "on_session_end": ["messages"],
    "on_session_switch": ["new_session_id", "parent_session_id", "reset", "rewound"],
    "on_pre_compress": ["messages"],
    "on_memory_write": ["action", "target", "content", "metadata"],
    "on_delegation": ["task", "result", "child_session_id"],
    "save_config": ["values", "hermes_home"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_hooks_have_hermes_s_signatures(name):
    """Hermes 0.19 looks at some signatures: they are as its ABC has them, and more by keyword."""
    parameters = inspect.signature(getattr(HermesMemory, name)).parameters.values()
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "self"]
    known = len(SIGNATURES[name])
    assert [p.name for p in named[:known]] == SIGNATURES[name]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in named[known:])


def test_a_late_switch_after_a_resume_begins_nothing(host):
    """/new, back and forth while its switch still waits: one root, and no epoch."""
    memory = host.instance("s0")
    turn(memory, "hello", "s0")
    memory.on_session_switch("s0", parent_session_id="s1", reset=False, reason="resume")
    memory.on_session_switch("s1", parent_session_id="s0", reset=False, reason="resume")
    memory.on_session_end(talk("hello"))
    memory.on_session_switch("s1", parent_session_id="s0", reset=True, reason="new_session")
    assert [e.session.id for e in host.events(SessionEnded)] == ["s0"]
    assert {(e.session.root, e.session.epoch) for e in host.events()} == {("s0", 0), ("s1", 0)}
