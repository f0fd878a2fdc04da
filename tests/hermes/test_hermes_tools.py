"""Three providers behind one Hermes: their tools, their recall, and Hermes's own plugin hosted."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from helpers.hermes.hermes_agent import HAS_HOLOGRAPHIC, PYTHON, Hermes
from helpers.hermes.hermes_model import calls, keeps
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.events import ToolCalled

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

HOSTED = {"kind": "hermes:holographic", "hermes_python": str(PYTHON)}


@pytest.fixture(scope="module", name="world")
def _world(_hermes_python: None) -> Iterator[World]:
    """Return a world with builtin, holographic, and Hermes's holographic, if it has one."""
    hosted = {"hosted": HOSTED} if HAS_HOLOGRAPHIC else {}
    providers = ("builtin", "holographic", *hosted)
    made = World(providers=providers, provider=hosted, tool_wait=20.0)
    try:
        made.worker()
        with MemoryBus.connect(made.settings) as bus:  # as any process of this host before
            bus.session("earlier").turn_completed("an earlier day", "it was")
            assert bus.flush("logged", 60)
            wait_until(made.settings.tools_path.exists, "this host knows the tools", 60)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module", name="hermes")
def _hermes(world: World) -> Hermes:
    return world.hermes()


def test_every_tool_is_offered_once(world, hermes):
    """The model sees each provider's tools, and Hermes's own memory tool beside them."""
    hermes.chat("what can you do")
    tools = world.model.asked("what can you do").tools
    assert len(tools) == len(set(tools))
    hosted = {"fact_store", "fact_feedback"} if HAS_HOLOGRAPHIC else set()
    assert {"memory", "memory_search", "memory_add"} | hosted <= set(tools)


def test_a_writing_tool_is_an_event_and_is_answered(world, hermes):
    """A call of a tool that writes is logged (so a replay repeats it), applied and answered."""
    world.model.script(
        "store the comet", calls(("memory_add", {"content": "the comet returns in 2061"})), "stored"
    )
    hermes.chat("please store the comet")
    [called] = world.wait_events(ToolCalled, hermes.session)
    assert (called.event.provider, called.event.tool) == ("holographic", "memory_add")
    answer = json.loads(world.model.requests[-1].results[-1])
    assert "error" not in answer, answer


def test_a_reading_tool_is_answered_and_no_event(world, hermes):
    """A call of a tool that only reads is answered by a worker and leaves nothing in the log."""
    hermes.chat("the zebra lives in Hamburg")
    before = len(world.events(ToolCalled))
    world.model.script(
        "find the zebra", calls(("memory_search", {"query": "zebra Hamburg"})), "found"
    )

    def found() -> bool:
        hermes.chat("please find the zebra")
        return "Hamburg" in world.model.requests[-1].results[-1]

    wait_until(found, "the zebra is found by the tool", 90)
    assert len(world.events(ToolCalled)) == before


@pytest.mark.skipif(not HAS_HOLOGRAPHIC, reason="this release has no plugins of its own to host")
def test_a_hosted_plugin_applies_what_hermes_does(world, hermes):
    """Hermes's own holographic, in a worker: a memory write reaches its own database."""
    world.model.script(
        "keep the anchor",
        keeps("the anchor is rusty"),
        "kept",
    )
    hermes.chat("please keep the anchor")
    home = world.settings.provider_home("hosted")

    def facts() -> list[str]:
        found = []
        for path in home.rglob("memory_store.db"):
            # The table may not be there yet.
            with closing(sqlite3.connect(path)) as db, suppress(sqlite3.OperationalError):
                found += [row[0] for row in db.execute("select content from facts")]
        return found

    wait_until(lambda: "the anchor is rusty" in facts(), f"the fact is in {home}", 90)


def test_recall_names_its_providers(world, hermes):
    """What several providers remember comes labelled by provider, within the fences of Hermes."""
    world.model.script(
        "my lantern is green",
        keeps("the lantern is green"),
        "kept",
    )
    hermes.chat("my lantern is green")

    def asked() -> str:
        hermes.chat("tell me of the lantern")
        return " ".join(world.model.requests[-1].users)

    def labelled() -> bool:
        hermes.slash("/new")  # what one provider said already, no other says again in a session
        tries = (asked() for _ in range(2))
        return any("From builtin" in wire and "From holographic" in wire for wire in tries)

    wait_until(labelled, "two providers' recall is in the window", 90)
    wire = " ".join(world.model.requests[-1].users)
    assert wire.count("<memory-context>") == wire.count("</memory-context>")


def test_a_tool_answers_clearly_when_nobody_does(world, hermes):
    """G9: with no worker and a Redis that hangs, a call ends within its wait, with an error."""
    world.model.script(
        "while it is frozen", calls(("memory_search", {"query": "anything"})), "so be it"
    )
    world.server.freeze()
    try:
        took = hermes.chat("find it while it is frozen")["s"]
    finally:
        world.server.thaw()
    answer = json.loads(world.model.requests[-1].results[-1])
    assert answer["ok"] is False
    assert answer["error"]
    assert took < world.settings.tool_wait + 10
