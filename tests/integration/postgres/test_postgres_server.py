"""A server that goes away, is slow, or serves several owners at once."""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest
from helpers.processes.waiting import wait_until
from helpers.providers import service_opening
from memorybus.errors import (
    ConfigError,
    LeaseLost,
    MissingProvider,
    Transient,
    Unavailable,
    install_command,
)
from memorybus.events import Scope, TurnCompleted
from memorybus_providers.base import Fence, Progress, ProviderConfig, RecallScope
from memorybus_providers.postgres import PostgresProvider
from memorybus_providers.postgres.link import Link, provider_error_of
from memorybus_providers.postgres.options import Where
from unit.holographic.holographic_feeding import LANE, MINE, context, feed, texts, turn


def opened(url: str, home: Path, **options: object) -> AbstractContextManager[PostgresProvider]:
    """Open another instance."""
    return service_opening.opened(PostgresProvider, home, url=url, **options)


ADVISORY, LOCK = "wait_event = 'advisory'", "wait_event_type = 'Lock'"
"""What a connection may wait for."""


def backends(url: str) -> list[int]:
    """Return the process ids of all other connections to the database."""
    with psycopg.connect(url) as db:
        query = (
            "select pid from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        return [row[0] for row in db.execute(query)]


def test_a_killed_server_loses_nothing_and_repeats_nothing(own_postgres, tmp_path):
    """What was committed is there after a kill -9, what was open is not, the lane goes on (G4)."""

    def say_and_die(provider: PostgresProvider) -> None:
        with provider.transaction(Fence(LANE, 1)) as transaction:
            provider.sync_turn(turn("I saw a quokka"), context(2))
            transaction.record([context(2).event_id], Progress(1, "2-0", 2))
            own_postgres.kill()

    with opened(own_postgres.url(), tmp_path) as provider:
        feed(provider, [turn("I saw a heron")])
        with pytest.raises(Unavailable):
            say_and_die(provider)
        with pytest.raises(Unavailable):
            texts(provider, "What did I see?")
        own_postgres.start()

        assert provider.progress(LANE) == Progress(1, "1-0", 1)
        feed(provider, [turn("I saw a heron"), turn("I saw a quokka")])
        assert sorted(texts(provider, "What did I see?")) == ["I saw a heron", "I saw a quokka"]


def test_a_connection_that_was_ended_is_made_anew(provider, postgres_url):
    """A failover between two transactions is not noticed."""
    feed(provider, [turn("I saw a heron")])
    assert texts(provider, "heron")
    ours = backends(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        for pid in ours:
            db.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    wait_until(lambda: not backends(postgres_url), "all connections of the provider are gone")

    assert texts(provider, "heron")
    feed(provider, [turn("I saw a quokka")], first=2)
    assert texts(provider, "quokka")


def test_no_server_is_a_backend_that_is_down(tmp_path):
    """Opening without a server is `Unavailable`, and no error shows the password."""
    url = f"host={tmp_path} dbname=d user=u password=hunter2"

    with pytest.raises(Unavailable) as caught, opened(url, tmp_path):
        pass
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Where(url, "s", "hunter2"))


@pytest.mark.parametrize(
    "schema", ["", "Has Space", "pg_catalog", 'a"; drop schema x', "x" * 64, 7]
)
def test_a_schema_is_a_plain_name(schema, tmp_path):
    """What else could be pasted into SQL is refused before anything is connected."""
    with pytest.raises(ConfigError), opened("", tmp_path, schema=schema):
        pass


def test_a_missing_password_variable_is_named(tmp_path):
    """The option names a variable that must be there."""
    with pytest.raises(ConfigError, match="NO_SUCH_VARIABLE"):
        PostgresProvider(
            ProviderConfig(name="pg", home=tmp_path, options={"password_env": "NO_SUCH_VARIABLE"})
        )


def test_a_statement_ends_at_its_deadline(postgres_url):
    """The server itself ends what takes too long, and the connection serves on."""
    link = Link(Where(postgres_url, "public"))
    with pytest.raises(Transient), link.transaction(0.05, reading=True) as db:
        db.execute("select pg_sleep(30)")
    with link.transaction(5.0, reading=True) as db:
        assert db.execute("select 1").fetchone() == (1,)
    link.close()


def test_a_newer_release_is_not_written_to(provider, postgres_url, tmp_path):
    """Tables of a later step are left alone, and the remedy is named."""
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("insert into memorybus.migrations values (999)")

    with pytest.raises(Unavailable, match="upgrade"), opened(postgres_url, tmp_path):
        pass


def test_instances_that_open_at_once_make_the_tables_once(postgres_url, tmp_path):
    """Any number of workers may start on an empty database."""

    def opens(number: int) -> bool:
        with opened(postgres_url, tmp_path / str(number)) as provider:
            return provider.progress(LANE) is None

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(opens, range(6)))


def test_a_new_owner_waits_for_the_transaction_of_the_old_one(provider, postgres_url, tmp_path):
    """What the old one commits at the last moment the new one knows; then it is stale (G5)."""
    known: list[object] = []

    def take_over() -> None:
        with (
            opened(postgres_url, tmp_path) as newer,
            newer.transaction(Fence(LANE, 2)) as transaction,
        ):
            known.append(transaction.applied([context(1).event_id]))
            transaction.record((), Progress(2, "1-0", 1))

    successor = threading.Thread(target=take_over)
    with provider.transaction(Fence(LANE, 1)) as transaction:
        provider.sync_turn(turn("I saw a heron"), context(1))
        successor.start()
        wait_until(lambda: waits(postgres_url, ADVISORY), "the new owner waits for a lock")
        transaction.record([context(1).event_id], Progress(1, "1-0", 1))
    successor.join()

    assert known == [{context(1).event_id}]
    with pytest.raises(LeaseLost), provider.transaction(Fence(LANE, 1)):
        pass


def waits(url: str, what: str) -> bool:
    """Say whether a connection waits for something."""
    with psycopg.connect(url) as db:
        query = f"select 1 from pg_stat_activity where {what}"
        return db.execute(query).fetchone() is not None


def test_lanes_of_one_person_write_at_once(provider, postgres_url, tmp_path):
    """Two lanes that say the same note wait for each other, and it is kept once."""
    note = {"content": "Ana plays the cello"}
    results: list[object] = []

    def other() -> None:
        with (
            opened(postgres_url, tmp_path) as second,
            second.transaction(Fence("p01", 1)),
        ):
            second.sync_turn(turn("Hello from the other lane"), context(8, session="s9"))
            called = context(9, session="s9")
            results.append(second.handle_tool_call("memory_add", note, called))

    thread = threading.Thread(target=other)
    with provider.transaction(Fence(LANE, 1)):
        results.append(provider.handle_tool_call("memory_add", note, context(1)))
        thread.start()
        wait_until(
            lambda: waits(postgres_url, LOCK),
            "the other lane waits for the note",
        )
    thread.join()

    assert results[0] == results[1]
    listed = provider.handle_tool_call("memory_list", {}, context(10))["results"]
    assert [one["text"] for one in listed] == ["Ana plays the cello"]


def test_errors_quote_no_values(provider, postgres_url):
    """What the server says of a row is left out: users' texts stand in it."""
    with psycopg.connect(postgres_url) as db, pytest.raises(psycopg.Error) as caught:
        db.execute("insert into memorybus.scopes(key, agent, person, workspace) values"
                   " ('k', 'secret-name', '', ''), ('k', 'secret-name', '', '')")  # fmt: skip
    found = provider_error_of(caught.value)
    assert isinstance(found, Transient)
    assert "secret" not in str(found)


def test_a_turn_of_any_size_is_one_of_few_round_trips(provider):
    """A batch of many turns of many sessions commits, and each is found."""
    events: list[TurnCompleted] = [turn(f"I saw bird number{n}", "Indeed") for n in range(300)]
    feed(provider, events)

    assert texts(provider, "number217")[0] == "I saw bird number217"


def test_the_wall_keeps_others_rows_from_a_recall(postgres_server, postgres_url, tmp_path):
    """With a reader's role a statement without a scope sees the asked scope, and writes nothing."""
    postgres_server.role("wall_reader")
    with opened(postgres_url, tmp_path, reader="wall_reader") as provider:
        feed(provider, [turn("I saw a heron")])
        feed(provider, [turn("I saw a quokka")], first=2, scope=Scope(agent="coder", user="bob"))

        assert texts(provider, "What did I see?") == ["I saw a heron"]
        assert len(texts(provider, "What did I see?", RecallScope(None, None, None))) == 2
        with provider.opened.reading(MINE, seconds=5) as search:
            db = search.source._db
            seen = db.execute("select content from facts").fetchall()
            assert seen == [("I saw a heron",)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute("select * from scopes")


def test_a_role_that_is_not_there_holds_the_lanes(postgres_url, tmp_path):
    """A mistake of an operator parks nothing."""
    with (
        pytest.raises(Unavailable, match="no_such_role"),
        opened(postgres_url, tmp_path, reader="no_such_role"),
    ):
        pass


def test_without_the_driver_options_are_told_and_the_remedy_named(monkeypatch, tmp_path):
    """Who has not installed the extra can still read what it takes, and is told how to get it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    assert {"url", "schema"} <= {one["key"] for one in PostgresProvider.get_config_schema()}
    with pytest.raises(MissingProvider, match=re.escape(install_command("postgres"))):
        PostgresProvider(ProviderConfig(name="pg", home=tmp_path))


def test_nothing_is_kept_on_the_server_between_transactions(provider, postgres_url):
    """A pooler in transaction mode may give each transaction another connection."""
    feed(provider, [turn("I saw a heron"), turn("I saw a quokka")])
    assert texts(provider, "What did I see?")
    assert list(provider.export(MINE))
    store = provider.opened
    kept = (
        "select (select count(*) from pg_prepared_statements), (select count(*) from pg_cursors),"
        " current_setting('search_path'), current_setting('statement_timeout'),"
        " (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())"
    )
    with psycopg.connect(postgres_url) as fresh:
        clean = fresh.execute(kept).fetchone()
    assert [link._db.execute(kept).fetchone() for link in (store._link, store._readers)] == [
        clean,
        clean,
    ]
