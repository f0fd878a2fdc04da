"""Our `MemoryManager`, Redis away: what several providers give is one, and none harms another."""

import json
import logging
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from helpers.providers.tooling import schema
from memorybus.agent.session import Session
from memorybus.registry import tools_note
from memorybus.registry.tools import DeclaredTools
from memorybus.text.fence import line
from memorybus_hermes.plugin.manager import MemoryManager


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
