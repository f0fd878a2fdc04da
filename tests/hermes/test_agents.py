"""Agents beside a person's own: cron, a gateway's compression, an agent without the toolset."""

import statistics

import pytest
from helpers.hermes.hermes_agent import LONG_WORDS, VENV
from helpers.hermes.hermes_model import keeps
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    SessionEnded,
    SessionSwitched,
    TurnCompleted,
)

_KEEPS_AGENTS = any(VENV.glob("lib/*/site-packages/gateway/run_agent_cache.py"))

QUICK = 50.0
"""Milliseconds on a busy machine; a Redis that is away costs more."""

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not _KEEPS_AGENTS, reason="in 0.19 these agents have no memory"),
]


def test_a_gateway_compresses_beside_the_persons_agent(make_hermes_world):
    """A second agent of the session, named no person, compresses: all stays the person's own."""
    world = make_hermes_world()
    world.home.config["compression"] = {"checkpoint_required": True}
    world.home.write_config()
    gateway = world.hermes()
    said = [f"part {number}: {LONG_WORDS}".strip() for number in range(12)]
    for text in said:
        gateway.do("message", session="s-anna", user="anna", text=text)
    assert gateway.do("compress_beside", session="s-anna")["compressed"] == "s-anna"
    gateway.do("message", session="s-anna", user="anna", text="after the compression")
    gateway.do("settle")
    gateway.do("expire", session="s-anna")
    gateway.leave()
    world.drain()
    assert {e.scope.user for e in world.events()} == {"anna"}
    assert {e.scope.platform for e in world.events()} == {"telegram"}
    assert world.turns() == [*said, "after the compression"]
    assert len(world.events(ContextCompressing)) == len(world.events(SessionEnded)) == 1
    [switch] = [e.event for e in world.events(SessionSwitched)]
    assert (switch.reason, switch.retracted) == ("compression", ())
    report = world.reconcile()
    assert (report["missing"], report["undone"], report["sessions"]) == (0, 0, [])


def test_a_cron_run_writes_only_the_agents_own_notes(make_hermes_world):
    """What a job says is nobody's turn; what it noted in MEMORY.md is found by the next session."""
    world = make_hermes_world()
    world.model.script("nightly rounds", keeps("the boiler hums"), "noted")
    hermes = world.hermes()
    assert "noted" in hermes.do("job", text="make your nightly rounds")["done"]
    hermes.chat("good morning to you")
    hermes.chat("and a good day")
    hermes.do("settle")
    hermes.leave()
    world.drain()
    assert world.turns() == ["good morning to you", "and a good day"]
    assert [e.event.content for e in world.events(MemoryWritten)] == ["the boiler hums"]
    assert {e.session.id for e in world.events()} == {hermes.session}


def test_a_gateway_keeps_its_agents_until_their_owner_changes(make_hermes_world):
    """What a gateway asks for each message names nobody, and changes only with the settings."""
    world = make_hermes_world()
    world.server.stop()
    world.home.unset("MEMORYBUS_WORKSPACE")
    gateway = world.hermes()
    first, *again = [gateway.do("identity") for _ in range(20)]
    assert set(first["signature"]) == {"memorybus"}
    assert all(answer["signature"] == first["signature"] for answer in again)
    assert statistics.median(answer["ms"] for answer in again) < QUICK
    settings = world.home.path / "memorybus.toml"
    settings.write_text('workspace = "harbour"\n')
    moved = gateway.do("identity")["signature"]
    assert moved != first["signature"]
    settings.write_text("workspace = \n")
    assert gateway.do("identity")["signature"] == moved


def test_turns_go_on_without_the_memory_toolset(make_hermes_world):
    """Tools and block are withheld where the toolset is off; turns are published and recalled."""
    world = make_hermes_world(prefetch_deadline=5.0)
    world.worker()
    first = world.hermes()
    first.chat("my boat is called Penelope")
    first.do("settle")
    first.leave()
    hermes = world.hermes(toolsets=["todo"])
    hermes.chat("what is my boat called")
    wire = world.model.asked("what is my boat called")
    assert "Penelope" in wire.users[-1]
    assert "Long-term memory" not in wire.system
    assert not [tool for tool in wire.tools if "memory" in tool]
    world.wait_turns(hermes.session, "what is my boat called")
    hermes.leave()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_turn_that_ends_after_the_shutdown_is_not_lost(make_hermes_world, restarted):
    """Hermes rejects a turn once its shutdown has begun: the session's next agent publishes it."""
    world = make_hermes_world()
    gateway = world.hermes()
    gateway.do("late", session="s-late", user="mia", text="the words of the late turn")
    assert "rejecting late write task" in world.home.log()
    if restarted:
        gateway.leave()
        gateway = world.hermes()
    gateway.do("message", session="s-late", user="mia", text="the words after")
    gateway.do("settle")
    gateway.do("expire", session="s-late")
    gateway.leave()
    world.drain()
    turns = [(e.event.user, e.event.assistant) for e in world.events(TurnCompleted, "s-late")]
    said = "the words before", "the words of the late turn", "the words after"
    assert turns == [(text, f"I have heard: {text}") for text in said]
    assert {e.scope.user for e in world.events()} == {"mia"}
    report = world.reconcile()
    assert (report["missing"], report["undone"], report["sessions"]) == (0, 0, [])
