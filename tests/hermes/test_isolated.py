"""The real Hermes with ``plugins.isolation: host``: it runs the plugin in a process of its own."""

import json
import shutil

import pytest
from helpers.hermes.hermes_agent import PYTHON, VENV
from helpers.hermes.hermes_fixtures import MakeWorld
from helpers.hermes.hermes_model import keeps
from helpers.hermes.hermes_world import World
from memorybus.events import (
    ContextCompressing,
    MemoryWritten,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)

_HOSTS = any(VENV.glob("lib/*/site-packages/hermes_cli/plugin_host_child.py"))

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.releases,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not _HOSTS, reason="this release of Hermes isolates no plugins"),
]


@pytest.fixture(name="world")
def _world(make_hermes_world: MakeWorld) -> World:
    world = make_hermes_world(prefetch_deadline=5.0)
    world.home.config["plugins"] = {"isolation": "host"}
    world.home.write_config()
    return world


def test_a_turn_after_a_late_new_belongs_to_its_session(world):
    """A turn that begins before ``/new`` is reported is the new session's, with its tokens."""
    hermes = world.hermes()
    hermes.chat("the first words of the day")
    first = hermes.session
    world.wait_turns(first, "the first words of the day")
    hermes.do("busy")
    hermes.slash("/new")
    hermes.chat("words of another day")
    hermes.do("free")
    hermes.do("settle")
    hermes.leave()
    world.drain()
    second = hermes.session
    started = [(e.session.id, e.event.message) for e in world.events(TurnStarted)]
    assert started == [(first, "the first words of the day"), (second, "words of another day")]
    turns = [(e.session.id, e.event.tokens_in) for e in world.events(TurnCompleted)]
    assert turns == [(first, 100), (second, 100)]
    assert {e.session.id for e in world.events(SessionEnded)} == {first, second}
    assert [e.event.parent for e in world.events(SessionSwitched, second)] == [first]


@pytest.mark.parametrize("installed", [True, False])
def test_the_directory_of_a_plugin_host_is_nobodys(world, installed):
    """The directory in which the plugin host runs is not published as the conversation's.

    That is so whether Hermes finds the plugin in its home or by the entry point.
    """
    if not installed:
        shutil.rmtree(world.home.path / "plugins" / "memorybus")
    hermes = world.hermes()
    hermes.chat("where are we")
    hermes.do("settle")
    hermes.leave()
    world.drain()
    assert [e.event.details.get("cwd", "") for e in world.events(SessionStarted)] == [""]


def test_a_conversation_is_whole_through_compressions(world):
    """Writes, two compressions, an undo and a resume: nothing is lost, doubled or misfiled."""
    world.model.script("keep the kettle", keeps("kettle is copper"), "kept")
    hermes = world.hermes()
    hermes.chat("keep the kettle")
    said = world.compress_twice_and_resume(hermes)
    expected = ["keep the kettle", *said, "after the resume"]
    assert world.turns(hermes.session) == world.turns() == expected
    assert [e.event.content for e in world.events(MemoryWritten)] == ["kettle is copper"]
    assert len(world.events(ContextCompressing, hermes.session)) == 2
    assert len(world.events(SessionEnded, hermes.session)) == 2
    steps = [e.event.reason for e in world.events(SessionSwitched, hermes.session)]
    assert steps == ["compression", "compression", "rewind"]
    [undone] = [e.event.retracted for e in world.events(SessionSwitched) if e.event.retracted]
    assert [e.event.user for e in world.events(TurnCompleted) if e.id in undone] == said[14:]
    report = world.reconcile()
    assert (report["missing"], report["undone"], report["sessions"]) == (0, 0, [])


def test_status_names_what_isolation_takes_away(world):
    """`hermes memorybus` is no command there: `memorybus hermes status` says what is."""
    assert world.home.run("memorybus", "status").returncode != 0
    words = ("hermes", "status", "--json", "--home", world.home.path, "--python", PYTHON)
    checks = json.loads(world.memorybus(*words, code=1))["checks"]
    [isolation] = [check for check in checks if check["name"] == "isolation"]
    assert isolation["ok"]
    assert "use `memorybus hermes …`" in isolation["found"]


def test_what_was_recalled_is_shown(world):
    """The person sees how much was recalled, and no tool of ours hides behind one of Hermes's."""
    world.worker()
    world.model.script("keep the kettle", keeps("The kettle is made of copper"), "kept")
    hermes = world.hermes()
    hermes.chat("please keep the kettle")
    hermes.do("settle")
    hermes.slash("/new")
    hermes.chat("what is the kettle made of")
    assert "kettle is made of copper" in world.model.asked("what is the kettle").users[-1]
    assert "memorybus — recalled" in hermes.do("recalled")["shown"]
    assert "shadows a reserved core" not in world.home.log()
    hermes.leave()
