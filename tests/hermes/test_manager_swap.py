"""The bus's `MemoryManager` in the place of Hermes's own: the real agent does the same turns."""

import ast
import inspect
from typing import Any

import msgspec
import pytest
from helpers.hermes.hermes_agent import VENV
from helpers.hermes.hermes_model import keeps
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until
from memorybus.events import MemoryWritten, SessionEnded, SessionSwitched, TurnCompleted
from memorybus_hermes.plugin.manager import MemoryManager

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

SAID = ("please keep the kettle", "where is the harbour", "good evening")


KEEP = keeps("kettle is copper")


def conversation(world: World, *, swapped: bool) -> list[dict[str, Any]]:
    """Hold a conversation over two sessions and return what is in the log of it, without ids."""
    world.model.script("keep the kettle", KEEP, "kept")
    hermes = world.hermes()
    if swapped:
        hermes.do("swap_manager")
    sessions = []
    for text in SAID[:2]:
        hermes.chat(text)
    sessions.append(hermes.session)
    hermes.do("settle")
    hermes.slash("/new")
    hermes.chat(SAID[2])
    sessions.append(hermes.session)
    assert hermes.do("settle")["done"]
    for session, said in zip(sessions, (SAID[:2], SAID[2:]), strict=True):
        world.wait_turns(session, *said)
    world.wait_events(MemoryWritten, sessions[0])
    world.wait_events(SessionEnded, sessions[0])
    world.wait_events(SessionSwitched, sessions[1])
    return told(world, sessions)


def told(world: World, sessions: list[str]) -> list[dict[str, Any]]:
    """Return the log's events with the sessions' places for their ids, in an order of their own."""
    names = {session: f"session {place}" for place, session in enumerate(sessions)}
    kinds = (TurnCompleted, MemoryWritten, SessionEnded, SessionSwitched)
    found = []
    for kind in kinds:
        for envelope in world.events(kind):
            text = msgspec.json.encode(envelope.event).decode()
            for session, name in names.items():
                text = text.replace(session, name)
            place = [names.get(envelope.session.id), names.get(envelope.session.root)]
            found.append({"scope": envelope.scope, "place": place, **msgspec.json.decode(text)})
    return found


def test_the_real_agent_does_the_same_turns(make_hermes_world):
    """With the manager swapped, log and model see what they see with the plugin."""
    plugin, swapped = make_hermes_world(), make_hermes_world()

    assert conversation(plugin, swapped=False) == conversation(swapped, swapped=True)

    sent = [[request.users for request in world.model.requests] for world in (plugin, swapped)]
    assert sent[0] == sent[1]
    assert plugin.model.requests[0].system.count("# Long-term memory") == 1
    assert swapped.model.requests[0].system.count("# Long-term memory") == 1
    assert plugin.home.hooks("sync_turn")
    assert swapped.home.hooks("sync_turn") == []


def test_recall_reaches_the_model_through_the_swapped_manager(make_hermes_world):
    """What was remembered in one session stands fenced in a message of the next."""
    world = make_hermes_world()
    world.worker()
    world.model.script("keep the kettle", KEEP, "kept")
    hermes = world.hermes()
    hermes.do("swap_manager")
    hermes.chat(SAID[0])
    hermes.slash("/new")

    def recalled() -> bool:
        hermes.chat("What is the kettle made of?")
        sent = "\n".join(world.model.requests[-1].users)
        return "<memory-context>" in sent and "kettle is copper" in sent

    wait_until(recalled, "the kettle is recalled", 60)


def hermes_methods() -> dict[str, ast.arguments]:
    """Return the public methods of Hermes's class by reading its source; nothing is imported."""
    (path,) = VENV.glob("lib/python3*/site-packages/agent/memory_manager.py")
    (manager,) = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "MemoryManager"
    ]
    methods = [node for node in manager.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node.args for node in methods if not node.name.startswith("_")}


@pytest.mark.usefixtures("_hermes_python")
def test_every_public_method_of_hermes_is_there():
    """Whatever Hermes calls on its manager can be called on ours, with the same arguments.

    What later releases give beside is behind these, by keyword.
    """
    theirs = hermes_methods()
    assert len(theirs) > 20

    for name, arguments in theirs.items():
        ours = inspect.getattr_static(MemoryManager, name)
        function = ours.fget if isinstance(ours, property) else ours
        given = inspect.signature(function).parameters
        wanted = [one.arg for one in (*arguments.args, *arguments.kwonlyargs)]
        named = [p for p in given.values() if p.kind is not p.VAR_KEYWORD]
        known, later = named[: len(wanted)], named[len(wanted) :]
        assert [p.name for p in known] == wanted, name
        defaults = len(arguments.defaults) + sum(d is not None for d in arguments.kw_defaults)
        assert sum(p.default is not p.empty for p in known) == defaults, name
        assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in later), name
        has_kwargs = any(p.kind is p.VAR_KEYWORD for p in given.values())
        assert has_kwargs == (arguments.kwarg is not None), name
