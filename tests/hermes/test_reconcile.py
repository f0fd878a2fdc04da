"""Reconcile against what the real Hermes stores: nothing that the log has comes twice."""

import json
from typing import Any

import pytest
from helpers.hermes.hermes_agent import LONG_WORDS, Hermes, Home
from helpers.hermes.hermes_model import keeps
from helpers.hermes.hermes_world import World
from memorybus.events import SessionEnded, SessionSwitched, TurnCompleted

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

SAID = {
    "first": ["keep the kettle", *(f"part {n} {LONG_WORDS}".strip() for n in range(11))],
    "after": ["after the compression", "thanks", "thanks"],
    "undone": ["what I take back"],
    "branch": ["on the branch"],
    "new": ["something else"],
}


def live(world: World, hermes: Hermes) -> dict[str, str]:
    """Lead a day's conversation, in all the ways from session to session; return the sessions."""
    world.model.script(
        "keep the kettle",
        keeps("kettle is copper"),
        "kept",
    )
    for text in SAID["first"]:
        hermes.chat(text)
    main = hermes.session
    hermes.slash("/compress")
    assert hermes.session == main, "the compression was to be in place"
    for text in SAID["after"] + SAID["undone"]:
        hermes.chat(text)
    hermes.slash("/undo")
    hermes.slash("/branch twig")
    branch = hermes.session
    hermes.chat(SAID["branch"][0])
    hermes.slash("/new")
    hermes.chat(SAID["new"][0])
    new = hermes.session
    hermes.do("settle")
    hermes.leave()
    return {"main": main, "branch": branch, "new": new}


def reconcile(world: World, home: Home) -> dict[str, Any]:
    """Reconcile a home in which no Hermes runs any more."""
    words = ("--apply", "--settle", "0", "--json", "--home", home.path)
    found: dict[str, Any] = json.loads(world.memorybus("hermes", "reconcile", *words))
    return found


def test_all_that_the_plugin_told_is_recognised(make_hermes_world):
    """After a whole day with the plugin reconcile finds nothing to publish (G2)."""
    world = make_hermes_world()
    live(world, world.hermes())
    world.drain()  # leaving waits for a moment only
    before = len(world.events())
    report = reconcile(world, world.home)
    assert (report["missing"], report["published"], report["memories"]) == (0, 0, 0), report
    assert report["undone"] == 0, "the plugin has retracted it"
    assert report["stored_turns"] >= 17
    assert report["sessions"] == []
    assert len(world.events()) == before


def test_a_history_without_the_bus_is_imported(make_hermes_world):
    """What Hermes lived through without the plugin: each turn once, under its session and root."""
    world = make_hermes_world()
    plain = world.make_home("plain", "")
    sessions = live(world, world.hermes(plain))
    report = reconcile(world, plain)
    assert report["memories"] == 1
    told = {name: world.turns(session) for name, session in sessions.items()}
    assert told == {
        "main": SAID["first"] + SAID["after"],
        "branch": SAID["branch"],
        "new": SAID["new"],
    }
    [twig] = world.events(TurnCompleted, sessions["branch"])
    assert (twig.session.root, twig.session.parent) == (sessions["main"], sessions["main"])
    assert len(world.events(SessionEnded, sessions["branch"])) == 1  # by /new
    assert reconcile(world, plain)["published"] == 0


def test_a_compression_into_another_session_is_no_second_history(make_hermes_world):
    """Not in place: what Hermes copies into the new session is not imported again."""
    world = make_hermes_world()
    plain = world.make_home("plain", "")
    plain.config["compression"] = {"in_place": False}
    plain.write_config()
    hermes = world.hermes(plain)
    said = [f"long story part {number} {LONG_WORDS}".strip() for number in range(12)]
    old, new = hermes.compressed_after(said)
    hermes.leave()
    reconcile(world, plain)
    assert (world.turns(old), world.turns(new)) == (said, ["after the compression"])
    [switch] = world.events(SessionSwitched, new)
    assert (switch.event.reason, switch.session.root, switch.session.parent) == (
        "compression",
        old,
        old,
    )
