"""Hindsight and Mem0 through the bus: real workers, and faults of a fake server."""

from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.services.fake_hindsight import FakeHindsight, fake_hindsight
from helpers.services.fake_mem0 import FakeMem0, fake_mem0
from helpers.services.troubles import Trouble
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
TURNS = 10
PEOPLE = ("ada", "bob", "cleo")
FAULTS: tuple[Trouble, ...] = ("lost", 500, "half", 503, "lost", 409, "half")


def said_by_all(settings: Settings) -> None:
    """Have three people say something each turn, and wait until all of it is applied."""
    with MemoryBus.connect(settings) as bus:
        for number in range(TURNS):
            for person in PEOPLE:
                session = bus.session("talk", user=person, warm=False)
                session.turn_completed(f"{person} said{number}", "Noted.", ordinal=number)
        assert bus.flush(timeout=30)
        wait_until(lambda: not read_status(settings).providers[0].backlog, "all applied", 90)


def every_turn_once(texts: list[str]) -> bool:
    """Say whether each turn stands in exactly one text."""
    said = [f"{person} said{number}" for person in PEOPLE for number in range(TURNS)]
    return len(texts) == len(said) and all(
        sum(f"{turn}\n" in text for text in texts) == 1 for turn in said
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("kind", "options"), [("hindsight", {}), ("mem0-server", {"infer": False})]
)
def test_two_workers_store_each_turn_once_whatever_the_server_does(
    redis_url: str,
    make_settings: MakeSettings,
    spawn: Spawn,
    kind: str,
    options: dict[str, Any],
) -> None:
    """Lost answers, half answers and refusals leave each turn there once, for its owner (G4)."""
    serving = fake_hindsight() if kind == "hindsight" else fake_mem0()
    with serving as server:
        assert isinstance(server, FakeHindsight | FakeMem0)
        server.troubles = list(FAULTS)
        given = {kind: {"base_url": server.url, **options}}
        settings = make_settings(url=redis_url, providers=(kind,), provider=given, **SURE)
        workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
        said_by_all(settings)
        assert server.troubles == []
        assert every_turn_once(server.texts())
        with MemoryBus.connect(settings) as bus:
            session = bus.session("other", user="ada", warm=False)
            wait_until(lambda: "said7" in session.prefetch("What was said7?"), "it is recalled", 60)
            assert "bob" not in session.prefetch("And what of bob and said7?")
        for one in workers:
            assert one.terminate() == 0


@pytest.mark.timeout(240)
def test_a_rebuild_fills_banks_of_another_prefix(
    redis_url: str, make_settings: MakeSettings, spawn: Spawn
) -> None:
    """The same events, each once, beside the first: then it serves (G8)."""
    with fake_hindsight() as server:
        given = {"hindsight": {"base_url": server.url}}
        settings = make_settings(url=redis_url, providers=("hindsight",), provider=given, **SURE)
        worker(spawn, settings, jobs=1)
        said_by_all(settings)
        ran(spawn, settings, "rebuild", "hindsight", "--set", "prefix=second", "--execute")
        wait_until(lambda: len(server.texts()) == 2 * len(PEOPLE) * TURNS, "all is there again", 60)
        banks = [list(held) for name, held in server.banks.items() if name.startswith("second__")]
    assert sorted(map(len, banks)) == [TURNS] * len(PEOPLE)
