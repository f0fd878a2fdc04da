"""``memorybus diff``: two providers side by side, before one moves from one to the other."""

import json

import pytest
from helpers.stories.scenario import wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus_console.cli.app import main


@pytest.mark.timeout(120)
def test_two_providers_are_asked_the_same(redis_url, redis_client, make_settings, spawn, capsys):
    """G8: each provider answers through its own recall processes, for the scope that is named."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"))
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", user="ann", warm=False)
        session.memory_written("add", "Ann sails to Kiel", store="user")
        session.turn_completed("The boat lies in Kiel", "Noted.", ordinal=0)
        assert bus.flush("logged", 10)
    for name in settings.providers:
        wait_applied(redis_client, settings, name)
    where = ("--url", settings.url, "--namespace", settings.namespace, "--user", "ann", "--json")
    assert main(["diff", "builtin", "holographic", "--query", "Kiel?", *where]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    sides = {
        side["instance"]: [one["text"] for one in side["items"]]
        for side in (found["first"], found["second"])
    }
    assert sides["builtin"] == ["Ann sails to Kiel"]
    assert set(sides["holographic"]) >= {"Ann sails to Kiel", "The boat lies in Kiel"}
    assert found["same"] is False
