"""Services through the bus: real workers, faults of a fake server, a rebuild beside the first."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.services import SERVICES, Service
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
TURNS = 10
PEOPLE = ("ada", "bob", "cleo")
FAULTS: Any = ("lose", 500, "half", 503, "lose", 409, "half")


each_service = pytest.mark.parametrize("name", ["hindsight", "mem0", "honcho", "mentisdb"])


@pytest.fixture
def settings_of(redis_url: str, make_settings: MakeSettings) -> Callable[[Service, str], Settings]:
    """Return a function that makes settings with one service at an address."""

    def make(service: Service, url: str) -> Settings:
        if service.kind == "honcho":
            pytest.importorskip("honcho", reason="needs the extra honcho")
        given = {service.kind: {"base_url": url, **service.options}}
        return make_settings(url=redis_url, providers=(service.kind,), provider=given, **SURE)

    return make


def said_by_all(settings: Settings) -> None:
    """Have three people say something each turn, and wait until all of it is applied."""
    with MemoryBus.connect(settings) as bus:
        for number in range(TURNS):
            for person in PEOPLE:
                session = bus.session("talk", user=person, warm=False)
                session.turn_completed(f"{person} said{number}", "Noted.", ordinal=number)
        assert bus.flush(timeout=30)
        wait_until(lambda: not read_status(settings).providers[0].backlog, "all applied", 90)


def times_held(server: Any) -> Counter[int]:
    """Return how many turns are held how often; {1: all} is what is wanted."""
    texts = held(server)
    turns = [f"{person} said{number}\n" for person in PEOPLE for number in range(TURNS)]
    return Counter(sum(turn in text for text in texts) for turn in turns)


def held(server: Any) -> list[str]:
    """Return all texts that a server holds, in order, each with an end of line behind it."""
    return [f"{text}\n" for text in server.texts()]


def in_order(server: Any, person: str) -> bool:
    """Say whether a person's turns stand in the order in which they were said."""
    own = [text for text in held(server) if f"{person} said" in text]
    return all(f"{person} said{number}\n" in text for number, text in enumerate(own))


@pytest.mark.timeout(240)
@each_service
def test_two_workers_store_each_turn_once_whatever_the_server_does(settings_of, spawn, name):
    """Lost and half answers and refusals leave each turn once, for its owner (G3, G4)."""
    service = SERVICES[name]
    with service.serving() as server:
        settings = settings_of(service, server.url)
        server.faults = [service.fault(kind) for kind in FAULTS]
        workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
        said_by_all(settings)
        assert not server.faults
        assert times_held(server) == {1: TURNS * len(PEOPLE)}
        assert all(in_order(server, person) for person in PEOPLE)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("other", user="ada", warm=False)
            wait_until(lambda: "said7" in session.prefetch("What was said7?"), "it is recalled", 60)
            assert "bob" not in session.prefetch("And what of bob and said7?")
        for one in workers:
            assert one.terminate() == 0


@pytest.mark.timeout(240)
@each_service
def test_a_rebuild_fills_places_of_another_prefix(settings_of, spawn, name):
    """The same events, each once, beside the first: then it serves (G8)."""
    service = SERVICES[name]
    with service.serving() as server:
        settings = settings_of(service, server.url)
        worker(spawn, settings, jobs=1)
        said_by_all(settings)
        ran(spawn, settings, "rebuild", service.kind, "--set", "prefix=second", "--yes")
        twice = {2: TURNS * len(PEOPLE)}
        wait_until(lambda: times_held(server) == twice, "all is there again", 60)
