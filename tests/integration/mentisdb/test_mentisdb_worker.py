"""MentisDB through the bus: a branch, and a rebuild of it."""

from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.services.mentisdb_server import mentisdb_server
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}


@pytest.mark.timeout(240)
def test_a_rebuild_fills_chains_of_another_prefix_with_their_branches(
    redis_url, make_settings, spawn
):
    """The same events, each once, beside the first: then it serves (G8)."""
    with mentisdb_server() as server:
        settings = make_settings(
            url=redis_url,
            providers=("mentisdb",),
            provider={"mentisdb": {"base_url": server.url}},
            **SURE,
        )
        worker(spawn, settings, jobs=1)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("talk", user="ada", warm=False)
            session.turn_completed("I saw a quince.", "", ordinal=0)
            branch = session.branch("aside")
            branch.turn_completed("And a medlar.", "", ordinal=0)
            assert bus.flush(timeout=30)
            aside = "__default__ada__w__b-aside"
            told = "user: And a medlar."
            wait_until(lambda: told in server.contents(f"memorybus{aside}"), "it is stored")
            ran(spawn, settings, "rebuild", "mentisdb", "--set", "prefix=second", "--yes")
            wait_until(lambda: told in server.contents(f"second{aside}"), "it is stored again")
    assert server.contents("second__default__ada__w") == ["user: I saw a quince."]
