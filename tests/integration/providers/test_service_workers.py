"""Services through the bus: real workers, faults of a fake server, a rebuild beside the first."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.services.fake_hindsight import fake_hindsight
from helpers.services.fake_mem0 import fake_mem0
from helpers.services.faulty_http import Fault
from helpers.services.honcho_server import honcho_server
from helpers.services.mentisdb_server import mentisdb_server
from helpers.stories.rebuilding import ran
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
TURNS = 10
PEOPLE = ("ada", "bob", "cleo")
FAULTS = ("lost", 500, "half", 503, "lost", 409, "half")


class Service(NamedTuple):
    """A service, and how its fake is used.

    Attributes:
        kind: the provider's.
        options: of the instance, beside the address.
        serving: serves the fake while a block runs.
        texts: what it holds of all people, in order.
        trouble: makes its next writes fail.
        left: the troubles that did not happen yet.
    """

    kind: str
    options: Mapping[str, Any]
    serving: Callable[[], AbstractContextManager[Any]]
    texts: Callable[[Any], list[str]]
    trouble: Callable[[Any], None]
    left: Callable[[Any], Sequence[Any]]


def _troubles(server: Any) -> None:
    server.troubles = list(FAULTS)


def _faults(path: str) -> Callable[[Any], None]:
    def trouble(server: Any) -> None:
        kinds: Any = ("lose" if kind == "lost" else kind for kind in FAULTS)
        server.faults += [Fault(path, kind) for kind in kinds]

    return trouble


def _said_in_honcho(server: Any) -> list[str]:
    return [f"{one.content}\n" for one in server.messages if one.peer.startswith("person__")]


def _said_in_chains(server: Any) -> list[str]:
    return [f"{one['content']}\n" for held in server.chains.values() for one in held]


SERVICES = (
    Service(
        "hindsight", {}, fake_hindsight, lambda server: server.texts(), _troubles,
        lambda server: server.troubles,
    ),
    Service(
        "mem0-server", {"infer": False}, fake_mem0, lambda server: server.texts(), _troubles,
        lambda server: server.troubles,
    ),
    Service(
        "honcho", {}, honcho_server, _said_in_honcho, _faults("/messages"),
        lambda server: server.faults,
    ),
    Service(
        "mentisdb", {}, mentisdb_server, _said_in_chains, _faults("/v1/thoughts"),
        lambda server: server.faults,
    ),
)  # fmt: skip

each_service = pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.kind)


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


def times_held(texts: list[str]) -> Counter[int]:
    """Return how many turns are held how often; {1: all} is what is wanted."""
    turns = [f"{person} said{number}\n" for person in PEOPLE for number in range(TURNS)]
    return Counter(sum(turn in text for text in texts) for turn in turns)


def in_order(texts: list[str], person: str) -> bool:
    """Say whether a person's turns stand in the order in which they were said."""
    own = [text for text in texts if f"{person} said" in text]
    return all(f"{person} said{number}\n" in text for number, text in enumerate(own))


@pytest.mark.timeout(240)
@each_service
def test_two_workers_store_each_turn_once_whatever_the_server_does(settings_of, spawn, service):
    """Lost and half answers and refusals leave each turn once, for its owner (G3, G4)."""
    with service.serving() as server:
        settings = settings_of(service, server.url)
        service.trouble(server)
        workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
        said_by_all(settings)
        assert not service.left(server)
        assert times_held(service.texts(server)) == {1: TURNS * len(PEOPLE)}
        assert all(in_order(service.texts(server), person) for person in PEOPLE)
        with MemoryBus.connect(settings) as bus:
            session = bus.session("other", user="ada", warm=False)
            wait_until(lambda: "said7" in session.prefetch("What was said7?"), "it is recalled", 60)
            assert "bob" not in session.prefetch("And what of bob and said7?")
        for one in workers:
            assert one.terminate() == 0


@pytest.mark.timeout(240)
@each_service
def test_a_rebuild_fills_places_of_another_prefix(settings_of, spawn, service):
    """The same events, each once, beside the first: then it serves (G8)."""
    with service.serving() as server:
        settings = settings_of(service, server.url)
        worker(spawn, settings, jobs=1)
        said_by_all(settings)
        ran(spawn, settings, "rebuild", service.kind, "--set", "prefix=second", "--yes")
        twice = {2: TURNS * len(PEOPLE)}
        wait_until(lambda: times_held(service.texts(server)) == twice, "all is there again", 60)
