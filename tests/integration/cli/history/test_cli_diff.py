"""``memorybus diff``: two providers side by side, before one moves from one to the other."""

import pytest


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
