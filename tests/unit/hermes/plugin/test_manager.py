"""Our `MemoryManager`, Redis away: what several providers give is one, and none harms another."""

import inspect
import json
import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from helpers.providers.tooling import schema
from memorybus.agent.session import Session
from memorybus.errors import SpoolError
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    SessionEnded,
    SessionSwitched,
    TurnCompleted,
)
from memorybus.registry import tools_note
from memorybus.registry.tools import DeclaredTools
from memorybus.text.fence import line
from memorybus_hermes.plugin.manager import MemoryManager
from memorybus_hermes.plugin.provider import HermesMemory


@pytest.fixture(name="host")
def _host() -> Iterator[Host]:
    with hermes_host(compress_wait=0.001, tool_wait=0.001, opening_wait=0.0) as host:
        yield host


def manager_of(host: Host) -> MemoryManager:
    """Return a manager in a session."""
    manager = MemoryManager(host.shared.bus, host.process)
    manager.initialize_all("s1", **host.told(user_id="ann"))
    return manager


def test_the_recall_of_several_providers_is_one_text(host, monkeypatch):
    """Each provider's is labelled, in their order; one that has nothing is not there."""
    sections = [("one", [line("likes tea")]), ("none", []), ("two", [line("lives in Oslo")])]
    monkeypatch.setattr(Session, "recalled_lines", lambda *_, **__: sections)
    manager = manager_of(host)
    assert manager.describe_recall() == ""

    recalled = manager.prefetch_all("what do I like?", session_id="s1")

    assert recalled == "From one:\n- likes tea\nFrom two:\n- lives in Oslo"
    assert manager.describe_recall().endswith("memorybus — recalled 2 memories")
    assert manager.prefetch_all("and where do I live?", session_id="s1") == ""
    assert manager.describe_recall() == ""


def test_one_memory_is_no_memories(host, monkeypatch):
    """The line is read by people."""
    monkeypatch.setattr(Session, "recalled_lines", lambda *_, **__: [("one", [line("likes tea")])])
    manager = manager_of(host)
    manager.prefetch_all("what do I like?", session_id="s1")

    assert manager.describe_recall().endswith("recalled 1 memory")


def test_malformed_schemas_cost_no_other_tool(host, caplog):
    """One provider's mistakes are skipped with a warning; the rest is offered, its own included."""
    broken = ("no schema", None, {}, {"name": ["find"]}, schema("x", description=None))
    declared = {"a": DeclaredTools((*broken, schema("find"))), "b": DeclaredTools((schema("add"),))}
    tools_note.write_note(host.settings.tools_path, declared, "1")
    manager = manager_of(host)

    with caplog.at_level(logging.WARNING, "memorybus"):
        assert manager.get_all_tool_names() == {"find", "add"}
    assert caplog.text.count("provider a: tool") == len(broken)


def test_a_tool_of_the_agent_s_own_name_is_not_offered(host, monkeypatch, caplog):
    """What Hermes calls a tool of its own never goes to a provider; that is said once."""
    monkeypatch.setitem(sys.modules, "toolsets", SimpleNamespace(_HERMES_CORE_TOOLS=["clarify"]))
    declared = {"a": DeclaredTools((schema("clarify"), schema("find")))}
    tools_note.write_note(host.settings.tools_path, declared, "1")
    manager = manager_of(host)

    with caplog.at_level(logging.INFO, "memorybus"):
        assert [one["name"] for one in manager.get_all_tool_schemas()] == ["find"]
        assert (manager.has_tool("find"), manager.has_tool("clarify")) == (True, False)
    assert caplog.text.count("clarify") == 1


def test_no_method_raises_where_nothing_can_be_written(host):
    """G9: an agent whose memory has no disk goes on, every answer an empty one."""
    bus = host.shared.bus
    bus.sessions.close()
    manager = MemoryManager(bus, host.process)
    manager.initialize_all("s1", **host.told())

    manager.on_turn_start(1, "hello")
    assert manager.prefetch_all("hello", session_id="s1") == ""
    manager.sync_all("hello", "HELLO", session_id="s1", messages=talk("hello"))
    manager.queue_prefetch_all("hello", session_id="s1")
    manager.on_memory_write("add", "memory", "x", {})
    manager.on_delegation("task", "result")
    assert manager.on_pre_compress(talk("hello")) == ""
    manager.commit_session_boundary_async(talk("hello"), new_session_id="s2")
    assert json.loads(manager.handle_tool_call("find", {}))["ok"] is False
    manager.shutdown_all()
    assert host.shared.problems.count > 0


def test_what_hermes_would_mask_is_masked(host, monkeypatch):
    """In the place of Hermes's manager it hands over what that one would: no secret."""
    mask = SimpleNamespace(redact_for_egress=lambda text: text.replace("8342", "***"))
    monkeypatch.setitem(sys.modules, "agent", SimpleNamespace(redact=mask))
    monkeypatch.setitem(sys.modules, "agent.redact", mask)
    manager = manager_of(host)
    manager.on_turn_start(0, "my PIN is 8342")
    manager.sync_all("my PIN is 8342", "8342 it is", session_id="s1", messages=talk("PIN 8342"))
    manager.on_memory_write("add", "memory", "the PIN is 8342", {"session_id": "s1"})
    manager.on_delegation("try 8342", "8342 works", child_session_id="c1")
    assert "8342" not in repr(list(host.bus.accepted.values()))
    assert "***" in repr(host.events())


Call = tuple[tuple[Any, ...], dict[str, Any]]

WINDOW = talk("hello")
AUTHOR = {"id": "ann", "name": "Ann", "is_bot": False}
WRITE = {"session_id": "s1", "tool_call_id": "c1", "old_text": "tea"}

OF_0_19: dict[str, Call] = {
    "on_turn_start": ((1, "hello"), {}),
    "prefetch": (("hello",), {"session_id": ""}),
    "sync_turn": (("hello", "HELLO"), {"session_id": "s1", "messages": WINDOW}),
    "queue_prefetch": (("hello",), {"session_id": "s1"}),
    "on_memory_write": (("remove", "user", ""), {"metadata": WRITE}),
    "on_delegation": (("task", "result"), {"child_session_id": "child"}),
    "handle_tool_call": (("no_such_tool", {}), {}),
    "on_pre_compress": ((WINDOW,), {}),
    "on_session_switch": (
        ("s2",),
        {"parent_session_id": "s1", "reset": False, "reason": "compression"},
    ),
    "on_session_end": ((WINDOW,), {}),
    "shutdown": ((), {}),
}
OF_0_20_4: dict[str, Call] = OF_0_19 | {
    "prefetch": (("hello",), {"session_id": "s1"}),
    "on_pre_compress": ((WINDOW,), {"require_checkpoint": True}),
    "recall_status": ((), {}),
    "unavailable_reason": ((), {}),
}
LATER: dict[str, Call] = OF_0_20_4 | {
    "on_turn_start": (
        (1, "hello"),
        {"author_id": "ann", "author_name": "Ann", "author_is_bot": False},
    ),
    "sync_turn": (
        ("hello", "HELLO"),
        {"session_id": "s1", "messages": WINDOW, "turn_author": AUTHOR},
    ),
    "on_memory_write": (
        ("remove", "user", ""),
        {"metadata": WRITE | {"previous_content": "Likes tea."}},
    ),
}
HOOKS = {"0.19.0": OF_0_19, "0.20.4": OF_0_20_4, "later": LATER}

OF_MANAGERS = {
    "prefetch": "prefetch_all",
    "sync_turn": "sync_all",
    "queue_prefetch": "queue_prefetch_all",
    "recall_status": "describe_recall",
    "unavailable_reason": "supports_pre_compress_checkpoint",
    "shutdown": "shutdown_all",
}
"""What an agent calls on a manager where that calls a provider; other hooks have one name."""

CHECKPOINT = {
    "evidence_messages": WINDOW,
    "require_checkpoint": True,
    "checkpoint_api_version": 2,
}

PROBED = {
    "sync_turn": {"messages", "turn_author"},
    "on_memory_write": {"metadata"},
    "on_pre_compress": {"require_checkpoint"},
    "on_turn_start": {"author_id", "author_name", "author_is_bot"},
}
"""What Hermes looks for by name in a hook's signature before it gives it."""


def published(host: Host) -> list[tuple[type, str, str]]:
    """Return what a conversation with these calls leaves in the log."""
    kinds = (
        TurnCompleted,
        MemoryWritten,
        Delegated,
        ContextCompressing,
        SessionSwitched,
        SessionEnded,
    )
    return [(type(e.event), e.scope.user, e.session.id) for e in host.events(*kinds)]


CONVERSATION = [
    (TurnCompleted, "ann", "s1"),
    (MemoryWritten, "ann", "s1"),
    (Delegated, "ann", "s1"),
    (ContextCompressing, "ann", "s1"),
    (SessionSwitched, "ann", "s2"),
    (SessionEnded, "ann", "s2"),
]


@pytest.mark.parametrize("release", HOOKS)
def test_the_plugin_takes_every_release_s_calls(host, release):
    """Each form of each hook does what the hook is for; none is an error (G9)."""
    memory = host.instance("s1", user_id="ann")
    for name, (args, keywords) in HOOKS[release].items():
        getattr(memory, name)(*args, **keywords)

    assert host.shared.problems.count == 0
    assert published(host) == CONVERSATION
    (write,) = [e.event for e in host.events(MemoryWritten)]
    assert write.old_text == ("Likes tea." if release == "later" else "tea")


@pytest.mark.parametrize("release", HOOKS)
def test_the_manager_takes_every_release_s_calls(host, release):
    """The same conversation through our `MemoryManager` leaves the same in the log."""
    shared = host.shared
    manager = MemoryManager(shared.bus, host.process)
    manager.initialize_all("s1", **host.told(user_id="ann"))
    for name, (args, keywords) in HOOKS[release].items():
        asked = CHECKPOINT if "require_checkpoint" in keywords else keywords
        getattr(manager, OF_MANAGERS.get(name, name))(*args, **asked)

    assert shared.problems.count == 0
    assert published(host) == CONVERSATION


def test_a_manager_tells_the_entry_that_the_tool_took_away(host):
    """Only the tool's result is believed of what was there, not the agent's own metadata."""
    manager = MemoryManager(host.shared.bus, host.process)
    manager.initialize_all("s1", **host.told(user_id="ann"))
    operation = {"action": "remove", "target": "user", "old_text": "tea"}
    for result in ({"success": True, "removed_entry": "Likes tea."}, {"success": True}):
        manager.notify_memory_tool_write(
            result, operation, build_metadata=lambda: {"previous_content": "another"}
        )

    assert [e.event.old_text for e in host.events(MemoryWritten)] == ["Likes tea.", "tea"]


def test_a_manager_knows_checkpoints_of_two_versions(host):
    """A later version may ask for more: it is not promised."""
    manager = MemoryManager(host.shared.bus, host.process)
    manager.initialize_all("s1", **host.told())

    assert [manager.supports_pre_compress_checkpoint(n) for n in (1, 2, 3)] == [True, True, False]
    with pytest.raises(SpoolError, match="version 3"):
        manager.on_pre_compress(WINDOW, require_checkpoint=True, checkpoint_api_version=3)


def test_a_manager_can_be_inspected_without_a_trace(host):
    """Prompt and tools are there, and no session is."""
    manager = MemoryManager(host.shared.bus, host.process)
    manager.initialize_all_for_inspection("s1", **host.told())

    assert (manager.build_system_prompt() != "", manager.get_all_tool_schemas()) == (True, [])
    manager.sync_all("hello", "HELLO", session_id="s1", messages=WINDOW)
    assert host.events() == []


@pytest.mark.parametrize("name", PROBED)
def test_what_hermes_probes_for_is_there_by_name(name):
    """A parameter behind ``**kwargs`` alone is not given by a release that looks for its name."""
    assert PROBED[name] <= set(inspect.signature(getattr(HermesMemory, name)).parameters)
