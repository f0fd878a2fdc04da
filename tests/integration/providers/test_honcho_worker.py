"""Honcho through the bus: real workers, faults of the server, a rebuild beside it."""

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("honcho", reason="needs the extra honcho")

from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.services.faulty_http import Fault
from helpers.services.honcho_server import honcho_server
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.health.monitor import read_status

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
TURNS = 12
PEOPLE = ("ada", "bob", "cleo")
FAULTS = ("lose", 500, "half", 503, "lose", 409, "half")


@pytest.mark.timeout(240)
def test_two_workers_store_each_turn_once_whatever_the_server_does(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """Lost answers, half answers and refusals leave each turn there once, in order (G3, G4)."""
    with honcho_server() as server:
        options = {"base_url": server.url, "dialectic_every": 0}
        settings = make_settings(
            url=redis_url, providers=("honcho",), provider={"honcho": options}, **SURE
        )
        server.faults += [Fault("/messages", kind) for kind in FAULTS]  # type: ignore[arg-type]
        workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
        with MemoryBus.connect(settings) as bus:
            for number in range(TURNS):
                for person in PEOPLE:
                    session = bus.session("talk", user=person, warm=False)
                    session.turn_completed(f"{person} {number}", f"to {person}", ordinal=number)
            assert bus.flush(timeout=30)
            wait_until(lambda: not read_status(settings).providers[0].backlog, "all applied", 60)
            assert server.faults == []
            for person in PEOPLE:
                said = server.contents(f"person__{person}")
                assert said == [f"{person} {number}" for number in range(TURNS)]
            told = [one.content for one in server.messages if one.peer == "agent__default"]
            assert Counter(told) == {f"to {person}": TURNS for person in PEOPLE}
            session = bus.session("other", user="ada", warm=False)
            wait_until(lambda: "ada 7" in session.prefetch("What was ada 7?"), "it is recalled", 60)
            assert "bob" not in session.prefetch("And ada with bob 7?")
            for one in workers:
                assert one.terminate() == 0


@pytest.mark.timeout(240)
def test_a_rebuild_fills_workspaces_of_another_prefix(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """The same events, each once, beside the first: then it serves (G8)."""
    with honcho_server() as server:
        options = {"base_url": server.url, "dialectic_every": 0}
        settings = make_settings(
            url=redis_url, providers=("honcho",), provider={"honcho": options}, **SURE
        )
        worker(spawn, settings, jobs=1)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("talk", user="ada", warm=False)
            session.turn_completed("I saw a quince.", "Where?", ordinal=0)
            assert bus.flush(timeout=30)
            wait_until(lambda: len(server.messages) == 2, "it is stored")
            ran(spawn, settings, "rebuild", "honcho", "--set", "prefix=second", "--execute")
            wait_until(lambda: len(server.messages) == 4, "it is stored again")
    spaces = ["memorybus__default__ada", "second__default__ada"]
    assert sorted({one.workspace for one in server.messages}) == spaces
