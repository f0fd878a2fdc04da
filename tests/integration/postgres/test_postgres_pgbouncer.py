"""PgBouncer in transaction mode between workers and PostgreSQL: each transaction may get another
connection, and nothing that one leaves on it may be met by the next."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.service_opening import opened
from helpers.services.pgbouncer_server import PgBouncer, pgbouncer
from helpers.services.postgres_server import PostgresServer
from helpers.stories.scenario import PATIENT, worker
from memorybus.agent.client import MemoryBus
from memorybus.errors import LeaseLost, Unavailable
from memorybus.health.monitor import read_status
from memorybus_providers.base import Fence
from memorybus_providers.postgres import PostgresProvider
from unit.holographic.holographic_feeding import LANE, feed, texts, turn

pytestmark = pytest.mark.servers

SURE: Any = {**PATIENT, "prefetch_wait": 30.0, "partitions": 4}
PEOPLE = ("ada", "bob")
TURNS = 10


@pytest.fixture
def bouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """One before the server of this process's tests."""
    with pgbouncer(postgres_server) as running:
        yield running


@pytest.fixture
def url(bouncer: PgBouncer, postgres_server: PostgresServer) -> str:
    """The connection string of an empty database through it."""
    return bouncer.url(postgres_server.database())


def settings_of_pool(url: str) -> list[tuple[Any, ...]]:
    """Return what transactions have left on the connections of the pool: role, path, limits."""
    shown = (
        "select current_user, current_setting('search_path'), current_setting('statement_timeout'),"
        " coalesce(current_setting('memorybus.scopes', true), '')"
    )
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as db:
        return [row for _ in range(20) for row in db.execute(shown).fetchall()]


def test_a_transaction_leaves_nothing_on_its_connection(url, postgres_server, tmp_path):
    """Role, search path, time limits and scopes end with the transaction that set them (G9)."""
    postgres_server.role("pool_reader")
    with opened(PostgresProvider, tmp_path, url=url, reader="pool_reader") as provider:
        feed(provider, [turn("I saw a heron")])
        assert texts(provider, "heron") == ["I saw a heron"]
        assert set(settings_of_pool(url)) == {("postgres", '"$user", public', "0", "")}


def test_instances_that_open_at_once_make_the_tables_once(url, tmp_path):
    """The lock of migrations belongs to a transaction, so that a pool cannot lose it."""

    def opens(number: int) -> bool:
        with opened(PostgresProvider, tmp_path / str(number), url=url) as provider:
            return provider.progress(LANE) is None

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(opens, range(6)))


def test_a_stale_owner_is_refused_through_a_pool(url, tmp_path):
    """The lock of a lane and its epoch are the transaction's, whichever connection it has (G5)."""
    with opened(PostgresProvider, tmp_path, url=url) as provider:
        feed(provider, [turn("I saw a heron")], epoch=2)
        with pytest.raises(LeaseLost), provider.transaction(Fence(LANE, 1)):
            pass


def test_a_full_pool_is_a_backend_that_is_down(postgres_server, tmp_path):
    """Who gets no connection in time is held back, and goes on when there is one."""
    with pgbouncer(postgres_server, pool=1, wait=1) as narrow:
        url = narrow.url(postgres_server.database())
        with opened(PostgresProvider, tmp_path, url=url) as provider:
            feed(provider, [turn("I saw a heron")])
            with psycopg.connect(url, prepare_threshold=None) as other:
                other.execute("select 1")  # its transaction has the only connection
                with pytest.raises(Unavailable):
                    texts(provider, "heron")
            assert texts(provider, "heron") == ["I saw a heron"]


def test_a_killed_server_behind_it_is_waited_for(own_postgres, tmp_path):
    """What was committed is there once PostgreSQL is back; PgBouncer is not started anew (G4)."""
    with (
        pgbouncer(own_postgres) as bouncer,
        opened(PostgresProvider, tmp_path, url=bouncer.url("postgres")) as provider,
    ):
        feed(provider, [turn("I saw a heron")])
        own_postgres.kill()
        with pytest.raises(Unavailable):
            texts(provider, "heron")
        own_postgres.start()
        wait_until(lambda: _answers(provider), "a recall is answered again", 60)
        feed(provider, [turn("I saw a heron"), turn("I saw a quokka")])
        assert sorted(texts(provider, "saw")) == ["I saw a heron", "I saw a quokka"]


def _answers(provider: PostgresProvider) -> bool:
    try:
        return bool(texts(provider, "heron"))
    except Unavailable:
        return False


@pytest.mark.timeout(240)
def test_two_workers_remember_and_recall_through_it(url, redis_url, make_settings, spawn):
    """Each turn is stored once, in order, and found by its owner alone (G3, G4, G9)."""
    settings = make_settings(
        url=redis_url, providers=("postgres",), provider={"postgres": {"url": url}}, **SURE
    )
    workers = [worker(spawn, settings, jobs=1) for _ in range(2)]
    with MemoryBus.connect(settings) as bus:
        for number in range(TURNS):
            for person in PEOPLE:
                session = bus.session("talk", user=person, warm=False)
                session.turn_completed(f"{person} said{number}", "Noted.", ordinal=number)
        assert bus.flush(timeout=30)
        wait_until(lambda: not read_status(settings).providers[0].backlog, "all applied", 90)
        held = "select content from memorybus.facts where kind = 'user' order by session, seq"
        with psycopg.connect(url, prepare_threshold=None) as db:
            said = [row[0] for row in db.execute(held).fetchall()]
        for person in PEOPLE:
            own = [text for text in said if text.startswith(person)]
            assert own == [f"{person} said{number}" for number in range(TURNS)]
        session = bus.session("other", user="ada", warm=False)
        wait_until(lambda: "said7" in session.prefetch("What was said7?"), "it is recalled", 60)
        assert "bob" not in session.prefetch("And what of bob and said7?")
    for one in workers:
        assert one.terminate() == 0
