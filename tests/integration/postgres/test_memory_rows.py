"""The option `memory_rows`: the agent's two stores as rows, for providers of two methods."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from helpers.providers.service_opening import opened
from memorybus.errors import ConfigError
from memorybus.events import Event, MemoryWritten, Scope, StoreName, TurnCompleted
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.postgres import PostgresProvider
from unit.holographic.holographic_feeding import feed

ANN = Scope(agent="coder", user="ann")
HERS = Scope(agent="writer", user="ann", workspace="Novel")
BEN = Scope(agent="coder", user="ben")

Rows = dict[tuple[str, str], str]


@pytest.fixture
def provider(postgres_url: str, tmp_path: Path) -> Iterator[PostgresProvider]:
    """Return an open instance that keeps rows."""
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True) as found:
        yield found


@pytest.fixture
def rows(postgres_url: str) -> Callable[[], Rows]:
    """Return a function that reads the table as another program does."""

    def read() -> Rows:
        with psycopg.connect(postgres_url) as db:
            found = db.execute("select key, store, content, updated_at from memorybus.memory_rows")
            return {(key, store): content for key, store, content, at in found if at is not None}

    return read


def added(content: str, store: StoreName = "user") -> MemoryWritten:
    """Return an addition."""
    return MemoryWritten(action="add", store=store, content=content)


def fed(provider: PostgresProvider, first: int, *events: Event, scope: Scope = ANN) -> None:
    """Apply events of a scope, numbered from `first`."""
    feed(provider, events, first=first, scope=scope)  # type: ignore[arg-type]


def test_a_row_is_what_its_store_holds(
    provider: PostgresProvider, rows: Callable[[], Rows]
) -> None:
    """Entries stand in the order in which they came; a replacement and a removal are followed."""
    fed(provider, 1, added("Likes tea."), added("Has a cat."), added("Use tabs.", "memory"))
    user, memory = ("ann", "user"), ("coder@ann", "memory")
    assert rows() == {user: "Likes tea.\n§\nHas a cat.", memory: "Use tabs."}
    replaced = MemoryWritten(
        action="replace", store="user", content="Has two cats.", old_text="a cat"
    )
    fed(provider, 4, replaced, MemoryWritten(action="remove", store="memory", old_text="tabs"))
    assert set(rows()) == {user}
    assert set(rows()[user].split("\n§\n")) == {"Likes tea.", "Has two cats."}


def test_a_persons_row_is_of_all_agents_and_a_notes_row_of_one(
    provider: PostgresProvider, rows: Callable[[], Rows]
) -> None:
    """`user` follows the person; `memory` agent, person and workspace; nobody else's (G9)."""
    fed(provider, 1, added("Likes tea."), added("Use tabs.", "memory"))
    fed(provider, 3, added("Writes at night."), added("Chapter two.", "memory"), scope=HERS)
    fed(provider, 5, added("Likes coffee."), scope=BEN)
    found = rows()
    assert found.pop(("ann", "user")) == "Likes tea.\n§\nWrites at night."
    assert found.pop(("ben", "user")) == "Likes coffee."
    assert sorted(found.values()) == ["Chapter two.", "Use tabs."]


def test_forgetting_erases_from_the_rows(
    provider: PostgresProvider, rows: Callable[[], Rows]
) -> None:
    """What is erased of one agent's talk goes, what the person told another stays; then all."""
    fed(provider, 1, added("Likes tea."), added("Use tabs.", "memory"))
    fed(provider, 3, added("Writes at night."), scope=HERS)
    provider.forget(RecallScope("coder", "ann"))
    assert rows() == {("ann", "user"): "Writes at night."}
    provider.forget(RecallScope(None, "ann", None))
    assert rows() == {}


def test_turns_and_repetitions_change_no_row(
    provider: PostgresProvider, rows: Callable[[], Rows]
) -> None:
    """Only the stores are in rows, and an event that comes again is there once (G4)."""
    events = (added("Likes tea."), TurnCompleted(user="Hello.", assistant="Hi.", ordinal=0))
    fed(provider, 1, *events)
    before = rows()
    fed(provider, 1, *events)
    assert rows() == before == {("ann", "user"): "Likes tea."}


def test_rows_begin_with_what_is_kept_already(
    postgres_url: str, tmp_path: Path, rows: Callable[[], Rows]
) -> None:
    """An instance that gets the option later has rows of all that it remembers."""
    with opened(PostgresProvider, tmp_path, url=postgres_url) as without:
        fed(without, 1, added("Likes tea."))
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True):
        assert rows() == {("ann", "user"): "Likes tea."}


def test_an_erasure_without_the_option_erases_rows_that_are_left(
    postgres_url: str, tmp_path: Path, rows: Callable[[], Rows]
) -> None:
    """Who switched the option off, or erases from another host, leaves nothing in the rows."""
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True) as found:
        fed(found, 1, added("Likes tea."))
    with opened(PostgresProvider, tmp_path, url=postgres_url) as without:
        without.forget(RecallScope(None, "ann", None))
    assert rows() == {}


def test_the_option_is_a_flag(tmp_path: Path) -> None:
    """A text is no answer."""
    options = {"memory_rows": "yes"}
    with pytest.raises(ConfigError, match="memory_rows"):
        PostgresProvider(ProviderConfig(name="p", home=tmp_path, options=options))
