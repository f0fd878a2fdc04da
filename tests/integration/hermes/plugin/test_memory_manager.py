"""MemoryManager: an agent with Hermes's seam on a real Redis."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers.redis.log import logged
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import (
    Envelope,
    Event,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_hermes.plugin.manager import MemoryManager, memory_managers
from memorybus_hermes.plugin.provider import SYSTEM_PROMPT, HermesMemory

SKILL = (
    "[IMPORTANT: The user has invoked the tidy skill. "
    "The full skill content is loaded below.]\nTidy."
)


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


@pytest.fixture(name="new_manager")
def _new_manager(bus: MemoryBus) -> Callable[[], MemoryManager]:
    return memory_managers(bus)


@pytest.fixture(name="manager")
def _manager(new_manager: Callable[[], MemoryManager]) -> MemoryManager:
    manager = new_manager()
    manager.initialize_all("s1", platform="cli", user_id="alice", agent_identity="coach")
    return manager


def envelopes(settings: Settings, *kinds: type[Event]) -> list[Envelope]:
    """Return what is in the log of some kinds: by time, and within a key in the log's order.

    Events of two keys may bear the same millisecond: which of them comes first is chance.
    """
    found = [one.envelope for one in logged(settings)]
    return sorted((e for e in found if isinstance(e.event, kinds)), key=lambda e: e.at)


def turn(text: str) -> list[dict[str, Any]]:
    """Return a transcript of one turn."""
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]


def test_a_turn_is_in_the_log_when_it_is_flushed(manager, settings):
    """G1: `flush_pending` waits for the log; the turn has scope, session and number."""
    manager.on_turn_start(1, "I like tea.")
    assert manager.prefetch_all("I like tea.") == ""
    manager.sync_all("I like tea.", "Noted.", session_id="s1", messages=turn("I like tea."))
    manager.queue_prefetch_all("I like tea.", session_id="s1")

    assert manager.flush_pending()

    (found,) = envelopes(settings, TurnCompleted)
    assert isinstance(found.event, TurnCompleted)
    assert (found.event.user, found.event.ordinal) == ("I like tea.", 0)
    assert (found.scope.agent, found.scope.user, found.session.id) == ("coach", "alice", "s1")


def test_a_flush_without_redis_says_so(manager, redis_server):
    """G1: what is not in the log is not called flushed; it stays spooled."""
    redis_server.kill()

    manager.sync_all("I like tea.", "Noted.", session_id="s1")

    assert manager.flush_pending(timeout=0.1) is False
    redis_server.start()
    assert manager.flush_pending(timeout=20)


def test_nothing_is_waited_for_where_the_log_has_all(manager, redis_server):
    """G9: an agent that ends while Redis is away does not wait for it if nothing is unsent."""
    manager.sync_all("I like tea.", "Noted.", session_id="s1")
    assert manager.flush_pending(timeout=25)

    redis_server.kill()

    assert manager.flush_pending(timeout=0)
    manager.sync_all("I like rum.", "Noted.", session_id="s1")
    assert manager.flush_pending(timeout=0) is False
    redis_server.start()


def test_scaffolding_alone_is_no_turn(manager, settings):
    """A bare skill, or parts instead of text, is neither remembered nor asked for."""
    for said in (SKILL, [{"type": "text", "text": "x"}]):
        manager.sync_all(said, "Tidied.", session_id="s1")
        manager.queue_prefetch_all(said, session_id="s1")
        assert manager.prefetch_all(said) == ""
    assert manager.flush_pending()

    assert envelopes(settings, TurnCompleted) == []


def test_a_boundary_ends_before_it_begins(manager, settings):
    """The end of a session is published before the next one's start, which is a new root."""
    manager.sync_all("bye", "Bye.", session_id="s1")
    manager.commit_session_boundary_async(turn("bye"), new_session_id="s2", parent_session_id="s1")
    manager.sync_all("hello", "Hello.", session_id="s2")
    assert manager.flush_pending()

    (ended,) = envelopes(settings, SessionEnded)
    (switched,) = envelopes(settings, SessionSwitched)
    assert (ended.session.id, switched.session.id) == ("s1", "s2")
    assert ended.at <= switched.at
    roots = {e.event.user: e.session.root for e in envelopes(settings, TurnCompleted)}
    assert roots == {"bye": "s1", "hello": "s2"}


def test_a_memory_tools_writes_are_published_once_each(manager, settings):
    """A batch is as many events, with the old text and the provenance of the agent."""
    operations = [
        {"action": "add", "content": "Likes tea."},
        {"action": "remove", "old_text": "Likes rum."},
    ]
    manager.notify_memory_tool_write(
        json.dumps({"success": True}),
        {"target": "user", "operations": operations},
        build_metadata=lambda: {"tool_call_id": "call-1", "session_id": "s1"},
    )
    manager.notify_memory_tool_write({"success": False}, {"action": "add", "content": "lost"})
    assert manager.flush_pending()

    found = [e.event for e in envelopes(settings, MemoryWritten)]
    assert [(e.action, e.store, e.content, e.old_text) for e in found] == [
        ("add", "user", "Likes tea.", ""),
        ("remove", "user", "", "Likes rum."),
    ]


def test_a_write_without_provenance_is_still_published(manager, settings):
    """G9: an agent's error beside a write neither stops the agent nor loses the write."""
    manager.notify_memory_tool_write(
        {"success": True}, {"action": "add", "content": "Likes tea."}, build_metadata=lambda: 1 / 0
    )
    assert manager.flush_pending()

    assert len(envelopes(settings, MemoryWritten)) == 1


def test_two_managers_of_one_bus_keep_apart(bus, new_manager, settings):
    """Each agent has a manager; what they publish goes under their own persons."""
    for user in ("alice", "bob"):
        manager = new_manager()
        manager.initialize_all(f"of-{user}", platform="telegram", user_id=user)
        manager.sync_all(f"I am {user}", "Hello.", session_id=f"of-{user}")
    assert bus.flush(timeout=25)

    found = {e.scope.user: e.event for e in envelopes(settings, TurnCompleted)}
    assert {u: e.user for u, e in found.items()} == {
        "alice": "I am alice",
        "bob": "I am bob",
    }


def test_managers_of_one_bus_share_what_they_saw_of_memory_files(
    bus, new_manager, settings, tmp_path
):
    """A write that one agent finds in the file, and another one's hook tells of, is one event."""
    file = tmp_path / "memories" / "USER.md"
    file.parent.mkdir()
    file.write_text("Lives in Oslo.")
    writer, finder = (new_manager() for _ in range(2))
    for manager, session in ((writer, "s1"), (finder, "s2")):
        manager.initialize_all(session, platform="cli", hermes_home=str(tmp_path))

    file.write_text("Lives in Oslo.\n§\nLikes tea.")
    os.utime(file, (1, 1))  # at rest, not being written
    finder.on_turn_start(1, "hello")
    writer.on_memory_write("add", "user", "Likes tea.", {"session_id": "s1", "tool_call_id": "c"})
    assert bus.flush(timeout=25)

    found = [e.event for e in envelopes(settings, MemoryWritten)]
    assert [e.content for e in found].count("Likes tea.") == 1


def test_only_the_bus_is_a_provider(manager, caplog):
    """A foreign provider is refused and told where to name it; the plugin itself is here."""

    class Foreign:
        name = "mem0"

    with caplog.at_level(logging.WARNING, "memorybus"):
        manager.add_provider(HermesMemory())
        assert caplog.text == ""
        manager.add_provider(Foreign())

    assert "hermes:mem0" in caplog.text
    assert [provider.name for provider in manager.providers] == ["memorybus"]
    assert manager.get_provider("memorybus") is manager.providers[0]
    assert manager.get_provider("mem0") is None


def test_a_shutdown_leaves_nothing_and_closes_nothing(manager, bus, settings):
    """Nothing is drained, since nothing is queued; the bus stays its owner's."""
    manager.sync_all("bye", "Bye.", session_id="s1")
    assert manager.shutdown_drain_state["status"] == "not_started"

    manager.shutdown_all()

    state = manager.shutdown_drain_state
    assert (state["status"], state["abandoned_writes"], state["active_tasks"]) == ("drained", 0, 0)
    assert bus.flush(timeout=25)
    assert len(envelopes(settings, TurnCompleted)) == 1


def test_the_system_prompt_stays_the_same(manager):
    """A text that changes would break the model's prefix cache."""
    first = manager.build_system_prompt()
    manager.sync_all("I like tea.", "Noted.", session_id="s1")

    assert first == manager.build_system_prompt() == SYSTEM_PROMPT


def test_a_tool_nobody_has_is_answered(manager):
    """The model gets a clear error, as JSON, and the agent no exception (G9)."""
    assert (manager.get_all_tool_names(), manager.has_tool("no_such_tool")) == (set(), False)

    answer = json.loads(manager.handle_tool_call("no_such_tool", {}, task_id="t"))

    assert "no_such_tool" in answer["error"]


def test_a_manager_before_its_start_does_nothing(new_manager, settings):
    """Hooks before `initialize_all` are no errors, and publish nothing."""
    manager = new_manager()
    manager.sync_all("hello", "Hello.")
    manager.on_session_end([])
    assert manager.on_pre_compress([]) == ""
    assert manager.flush_pending()

    assert envelopes(settings, TurnCompleted, SessionStarted, SessionEnded) == []
