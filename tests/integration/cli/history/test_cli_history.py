"""The commands of history as a new user meets them: plans, wrong names, Ctrl-C, small amounts."""

import json

import pytest
from helpers.stories.people import publish
from memorybus_console.cli import main


def test_nothing_is_archived_where_there_is_no_log(ready, capsys):
    """A namespace in which nothing was published is an error that says what may be wrong."""
    for words in (("archive", "run"), ("archive", "ls")):
        assert main([*words, "--namespace", "nowhere"]) == 1
        assert "no log in the namespace 'nowhere'" in capsys.readouterr().err


def test_a_plan_names_the_places_of_the_history(ready, capsys):
    """A replay's plan shows how far it goes; a tiny segment has no ratio."""
    publish(ready, 1)
    assert main(["replay", "--provider", "builtin", "--into", "copy"]) == 0
    assert "4 places of the history" in capsys.readouterr().out
    assert main(["archive", "run"]) == 0
    capsys.readouterr()
    assert main(["archive", "ls"]) == 0
    assert "%" not in capsys.readouterr().out.replace("of raw", "")


def test_a_rebuild_says_what_it_leaves_out(ready, capsys):
    """G8: the plan names what every option leaves out, and the moment in UTC."""
    publish(ready, 2)
    words = ["rebuild", "builtin", "--except-user", "ann", "--except-session", "nowhere"]
    assert main([*words, "--until", "2020-01-01"]) == 0
    shown = capsys.readouterr().out
    assert "without sessions nowhere; users ann, now and in future" in " ".join(shown.split())
    assert "2020-01-01T00:00:00.000Z" in shown, "the moment that a time without a zone means"


@pytest.mark.parametrize(
    "words", [("replay", "--into", "copy", "--provider"), ("rebuild",), ("verify",)]
)
def test_an_unknown_provider_is_the_same_error_everywhere(words, ready, capsys):
    """A provider that nobody knows is wrong usage, and those that there are are named."""
    publish(ready, 2)
    assert main([*words, "nosuch"]) == 2
    assert "no provider 'nosuch'; there are: builtin, holographic" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rebuild", "builtin", "--set", "memory_limits=9"), "did you mean 'memory_limit'"),
        (("rebuild", "holographic", "--set", "colour=red"), "'colour'; its options are"),
        (
            ("replay", "--provider", "builtin", "--into", "two", "--set", "x=1"),
            "memory_limit, user",
        ),
        (("rebuild", "--drop", "builtin", "--set", "memory_limit=9"), "leave out --set"),
        (("rebuild", "--rollback", "builtin", "--except-user", "ann"), "leave out --set"),
        (("replay", "--cancel", "two", "--until", "2026-01-01"), "--cancel excludes the options"),
    ],
)
def test_an_option_that_nobody_takes_changes_nothing(words, said, ready, capsys):
    """An option that the provider, or the command, would ignore is wrong usage; nothing is made."""
    publish(ready, 1)
    assert main([*words, "--yes"]) == 2
    assert said in capsys.readouterr().err
    assert not ready.provider_home("two").exists()
    for what in ("rebuild", "replay"):
        assert main([what, "ls", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == []


@pytest.mark.timeout(120)
def test_two_providers_are_asked_the_same(make_world):
    """G8: each provider answers through its own recall processes, for the scope that is named."""
    world = make_world(providers=("builtin", "holographic"))
    world.worker()
    with world.bus() as bus:
        session = bus.session("s", user="ann", warm=False)
        session.memory_written("add", "Ann sails to Kiel", store="user")
        session.turn_completed("The boat lies in Kiel", "Noted.", ordinal=0)
        assert bus.flush("logged", 10)
    world.wait_applied()
    [diff] = world.result("diff", "builtin", "holographic", "--query", "Kiel?", "--user", "ann")
    sides = {
        side["instance"]: [item["text"] for item in side["items"]]
        for side in (diff["first"], diff["second"])
    }
    assert sides["builtin"] == ["Ann sails to Kiel"]
    assert set(sides["holographic"]) >= {"Ann sails to Kiel", "The boat lies in Kiel"}
    assert diff["same"] is False
