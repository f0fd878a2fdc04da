"""Every shipped backend in one bus, each in trouble in turn, while the others go on.

Postgres is real, Hindsight too where it was fetched; Honcho, Mem0's server and MentisDB are fakes.
A gate stands before each. The stores of one host are locked by somebody else, and once the worker
that holds them is killed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.services.environments import is_here
from helpers.services.fake_hindsight import fake_hindsight
from helpers.services.fake_mem0 import fake_mem0
from helpers.services.gate import Gate, Trouble
from helpers.services.hindsight_server import NAME as REAL_HINDSIGHT
from helpers.services.honcho_server import honcho_server
from helpers.services.mentisdb_server import mentisdb_server
from helpers.services.postgres_server import PostgresServer
from helpers.stories.scenario import worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus
from memorybus_providers.base import MemoryProvider, RecallScope
from memorybus_workers.hosting.instances import make_instance

pytestmark = [pytest.mark.backends, pytest.mark.timeout(300)]

REMOTE = ("postgres", "hindsight", "honcho", "mem0-server", "mentisdb")
LOCAL = {"builtin": "state.db", "holographic": "holographic.db"}
TROUBLES: tuple[Trouble | None, ...] = ("down", "slow", "refusing", "restarted", None)
PEOPLE = ("ada", "bob", "cleo")
TURNS = 4
WELL = 40.0
"""Seconds in which a provider that is well has a round's events: its lanes may still pause for the
trouble of the round before, and a machine with two cores serves all of them."""


class Fleet:
    """The bus and its backends.

    Attributes:
        settings: of the bus.
        gates: by provider, what stands before it.
    """

    def __init__(
        self, settings: Settings, gates: dict[str, Gate], postgres: PostgresServer
    ) -> None:
        self.settings, self.gates, self._postgres = settings, gates, postgres
        self._round = 0

    def status(self) -> dict[str, ProviderStatus]:
        """Return what is known of each provider."""
        return {one.name: one for one in read_status(self.settings).providers}

    def say(self, bus: MemoryBus) -> None:
        """Have everybody say something, and the agent note it."""
        for person in PEOPLE:
            session = bus.session("talk", user=person, warm=False)
            for number in range(TURNS):
                at = self._round * TURNS + number
                session.turn_completed(f"Tell {person} of apple{at}.", "", ordinal=at)
            session.memory_written("add", f"Has {person} a pear{self._round}?", store="user")
        assert bus.flush(timeout=30)
        self._round += 1

    @property
    def turns(self) -> list[str]:
        """What was said so far."""
        told = range(self._round * TURNS)
        return [f"Tell {person} of apple{at}." for person in PEOPLE for at in told]

    @property
    def notes(self) -> list[str]:
        """What was noted so far."""
        return [f"Has {who} a pear{number}?" for who in PEOPLE for number in range(self._round)]

    @contextmanager
    def trouble(self, number: int) -> Iterator[dict[str, Trouble | None]]:
        """Let most of the fleet be in trouble; yield who in which."""
        remote = {name: TROUBLES[(at + number) % len(TROUBLES)] for at, name in enumerate(REMOTE)}
        locked = list(LOCAL)[number % len(LOCAL)]
        with self._locked(locked):
            for name, trouble in remote.items():
                self._befall(name, trouble)
            yield {**remote, locked: "slow"}
            for name, trouble in remote.items():
                self._heal(name, trouble)

    def _befall(self, name: str, trouble: Trouble | None) -> None:
        if name == "postgres" and trouble == "down":
            self._postgres.kill()
        elif trouble:
            self.gates[name].befall(trouble)

    def _heal(self, name: str, trouble: Trouble | None) -> None:
        if name == "postgres" and trouble == "down":
            self._postgres.start()
        self.gates[name].heal()

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a local store, as a backup or a person with a shell does."""
        path = self.settings.data_dir / "providers" / name / LOCAL[name]
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
            db.execute("begin immediate")
            yield

    @contextmanager
    def opened(self, name: str) -> Iterator[MemoryProvider]:
        """Open an instance beside the workers'."""
        provider = make_instance(self.settings, name, SYSTEM)
        provider.open()
        try:
            yield provider
        finally:
            provider.shutdown()

    def held(self, name: str) -> list[str]:
        """Return all texts that a provider holds."""
        scope = RecallScope(None, None, None)
        with self.opened(name) as provider:
            if name != "builtin":
                return [one.text for one in provider.export(scope)]
            owners = [RecallScope(None, person, None) for person in PEOPLE]
            return [one.text for owner in owners for one in provider.export(owner)]


@pytest.fixture
def fleet(
    redis_url: str,
    make_settings: MakeSettings,
    own_postgres: PostgresServer,
    request: pytest.FixtureRequest,
) -> Iterator[Fleet]:
    """All backends, each behind a gate."""
    pytest.importorskip("honcho", reason="needs the extra honcho")
    fakes = {"honcho": honcho_server, "mem0-server": fake_mem0, "mentisdb": mentisdb_server}
    with ExitStack() as stack:
        urls = {name: stack.enter_context(serving()).url for name, serving in fakes.items()}
        urls["hindsight"] = (
            request.getfixturevalue("hindsight").url
            if is_here(REAL_HINDSIGHT)
            else stack.enter_context(fake_hindsight()).url
        )
        gates = {name: Gate(_address(url)) for name, url in urls.items()}
        gates["postgres"] = Gate(own_postgres.directory / ".s.PGSQL.5432")
        for gate in gates.values():
            stack.callback(gate.close)
        tables = {name: {"base_url": f"http://127.0.0.1:{gates[name].port}"} for name in urls}
        tables["postgres"] = {"url": f"postgresql://postgres@127.0.0.1:{gates['postgres'].port}/"}
        tables["mem0-server"] |= {"infer": False, "timeout": 4.0}
        tables["hindsight"] |= {"timeout": 4.0}
        settings = make_settings(
            url=redis_url,
            providers=(*LOCAL, *REMOTE),
            provider=tables,
            partitions=4,
            lease=5.0,
            call_timeout=4.0,
        )
        yield Fleet(settings, gates, own_postgres)


def _address(url: str) -> tuple[str, int]:
    found = urlsplit(url)
    return str(found.hostname), int(found.port or 80)


def once(wanted: Sequence[str], held: Sequence[str]) -> Counter[int]:
    """Return how many of the wanted texts are held how often."""
    return Counter(sum(text in one for one in held) for text in wanted)


def test_each_backend_in_trouble_holds_up_itself_alone_and_the_books_balance(fleet, spawn):
    """Who is well has all while others are away, and in the end all have each event once (G3, G4,
    G6)."""
    workers = [worker(spawn, fleet.settings) for _ in range(2)]
    with MemoryBus.connect(fleet.settings) as bus:
        fleet.say(bus)
        wait_until(lambda: idle(fleet, fleet.status()), "all is applied at first", 60)
        for number in range(len(TROUBLES)):
            with fleet.trouble(number) as troubles:
                fleet.say(bus)
                well = [
                    name for name in fleet.status() if troubles.get(name) in {None, "restarted"}
                ]
                wait_until(lambda well=well: idle(fleet, well), f"{well} go on", WELL)
                sick = set(fleet.status()) - set(well)
                assert all(fleet.status()[name].backlog for name in sick), f"{sick} wait"
        fleet.say(bus)
        workers[0].kill()
        wait_until(lambda: idle(fleet, fleet.status()), "all is applied in the end", 90)
    states = fleet.status().values()
    assert not [one.name for one in states if one.dead_letters or one.parked_keys]
    for name in (*LOCAL, *REMOTE):
        held = fleet.held(name)
        assert once(fleet.notes, held) == {1: len(fleet.notes)}, name
        if name != "builtin":
            assert once(fleet.turns, held) == {1: len(fleet.turns)}, name
    with fleet.opened("holographic") as local, fleet.opened("postgres") as server:
        assert list(local.digest() or ()) == list(server.digest() or ())


def idle(fleet: Fleet, names: Sequence[str] | dict[str, ProviderStatus]) -> bool:
    """Say whether nothing waits for these providers."""
    status = fleet.status()
    return not any(status[name].backlog for name in names)
