"""MentisDB through the bus: real workers, faults of the server, a branch, a rebuild."""

from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.services.faulty_http import Fault
from helpers.services.mentisdb_server import mentisdb_server
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.health.monitor import read_status

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
TURNS = 12
PEOPLE = ("ada", "bob", "cleo")
FAULTS: tuple[Any, ...] = ("lose", 500, "half", 503, "lose", 409, "half")


@pytest.mark.timeout(240)
def test_two_workers_store_each_turn_once_whatever_the_server_does(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """Lost answers, half answers and refusals leave each turn there once, in order (G3, G4)."""
    with mentisdb_server() as server:
        options = {"base_url": server.url}
        settings = make_settings(
            url=redis_url, providers=("mentisdb",), provider={"mentisdb": options}, **SURE
        )
        server.faults += [Fault("/v1/thoughts", kind) for kind in FAULTS]
        workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
        with MemoryBus.connect(settings) as bus:
            for number in range(TURNS):
                for person in PEOPLE:
                    session = bus.session("talk", user=person, warm=False)
                    session.turn_completed(f"{person} {number}", "", ordinal=number)
            assert bus.flush(timeout=30)
            wait_until(lambda: not read_status(settings).providers[0].backlog, "all applied", 60)
            assert server.faults == []
            for person in PEOPLE:
                said = server.contents(f"memorybus__default__{person}__w")
                assert said == [f"user: {person} {number}" for number in range(TURNS)]
            session = bus.session("other", user="ada", warm=False)
            wait_until(lambda: "ada 7" in session.prefetch("What was ada 7?"), "it is recalled", 60)
            assert "bob" not in session.prefetch("And ada with bob 7?")
            for one in workers:
                assert one.terminate() == 0


@pytest.mark.timeout(240)
def test_a_rebuild_fills_chains_of_another_prefix_with_their_branches(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> None:
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
            ran(spawn, settings, "rebuild", "mentisdb", "--set", "prefix=second", "--execute")
            wait_until(lambda: told in server.contents(f"second{aside}"), "it is stored again")
    assert server.contents("second__default__ada__w") == ["user: I saw a quince."]
