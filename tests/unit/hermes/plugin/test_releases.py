"""The hooks as each known release of Hermes calls them: every form is taken, by both our faces.

Hermes 0.19.0 is what the other tests run. The later forms are read in public sources of later
releases, some of branches.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from memorybus.errors import SpoolError
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    SessionEnded,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_hermes.plugin.manager import MemoryManager
from memorybus_hermes.plugin.provider import HermesMemory

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


@pytest.fixture(name="host")
def _host() -> Iterator[Host]:
    with hermes_host(compress_wait=0.001, tool_wait=0.001, opening_wait=0.0) as host:
        yield host


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
