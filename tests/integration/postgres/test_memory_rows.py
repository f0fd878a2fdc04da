"""The option `memory_rows`: the agent's two stores as rows, for providers of two methods."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from helpers.providers.service_opening import opened
from memorybus.errors import ConfigError
from memorybus.events import Event, MemoryWritten, Scope, StoreName, TurnCompleted
from memorybus_providers import registry
from memorybus_providers.adapters.ethos import LoadContext, MemoryContext, MemoryUpdate
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.contract.samples import recall_context
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
    feed(provider, events, first=first, scope=scope)


def test_a_row_is_what_its_store_holds(provider, rows):
    """Entries stand in the order in which they came; a replacement and a removal are followed."""
    fed(provider, 1, added("Likes tea."), added("Has a cat."), added("Use tabs.", "memory"))
    user, memory = ("ann", "user"), ("coder@ann", "memory")
    both = {memory: "Use tabs.", ("coder@ann:coder", "memory"): "Use tabs."}
    assert rows() == {user: "Likes tea.\n§\nHas a cat."} | both
    replaced = MemoryWritten(
        action="replace", store="user", content="Has two cats.", old_text="a cat"
    )
    fed(provider, 4, replaced, MemoryWritten(action="remove", store="memory", old_text="tabs"))
    assert set(rows()) == {user}
    assert set(rows()[user].split("\n§\n")) == {"Likes tea.", "Has two cats."}


def test_a_persons_row_is_of_all_agents_and_a_notes_row_of_one(provider, rows):
    """`user` follows the person; `memory` agent, person and workspace; nobody else's (G9)."""
    fed(provider, 1, added("Likes tea."), added("Use tabs.", "memory"))
    fed(provider, 3, added("Writes at night."), added("Chapter two.", "memory"), scope=HERS)
    fed(provider, 5, added("Likes coffee."), scope=BEN)
    found = rows()
    assert found.pop(("ann", "user")) == "Likes tea.\n§\nWrites at night."
    assert found.pop(("ben", "user")) == "Likes coffee."
    assert sorted(set(found.values())) == ["Chapter two.", "Use tabs."]
    assert [key for key, _ in sorted(found)] == [
        "coder@ann",
        "coder@ann:coder",
        "writer@ann@novel~43ad7549cc668d59a9850221fb896100",
        "writer@ann@novel~43ad7549cc668d59a9850221fb896100:writer",
    ]


class Documented:
    """The provider of the framework's own page, as far as it reads: two stores, found by a context.

    It looks for ``memory`` under ``sessionKey`` (with ``personalityId`` where the scope is
    ``per-personality``), and for ``user`` under ``userId ?? sessionKey``.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def prefetch(self, ctx: LoadContext) -> MemoryContext | None:
        """Return both stores as one text; None if there is nothing."""
        own = ctx.memory_scope == "per-personality" and ctx.personality_id
        key = f"{ctx.session_key}:{ctx.personality_id}" if own else ctx.session_key
        places = [(key, "memory"), (ctx.user_id or ctx.session_key, "user")]
        query = "select content from memorybus.memory_rows where key = %s and store = %s"
        with psycopg.connect(self._url) as db:
            contents = [row[0] for place in places for row in db.execute(query, place).fetchall()]
        return MemoryContext("\n\n".join(contents)) if contents else None

    def sync(self, ctx: LoadContext, updates: Sequence[MemoryUpdate]) -> None:
        """Write nothing: the rows follow the facts."""


def test_the_documented_provider_finds_the_rows(provider, postgres_url, tmp_path):
    """A provider of two methods finds both stores by the contexts that the bus gives it."""
    fed(provider, 1, added("Likes green tea."), added("Use tabs, not tea.", "memory"))
    fed(provider, 3, added("Ben's tea.", "memory"), added("Ben likes tea."), scope=BEN)
    config = ProviderConfig(
        name="documented", home=tmp_path / "home", options={"url": postgres_url}
    )
    reader = registry.create(f"ethos:{__name__}:Documented", config)
    reader.open()
    try:
        found = reader.prefetch("which tea", recall_context(ANN))
    finally:
        reader.shutdown()
    assert {one.text for one in found} == {"Likes green tea.", "Use tabs, not tea."}


def test_a_global_scope_finds_the_rows(provider, postgres_url):
    """Where the framework's scope is `global`, the key has no personality."""
    fed(provider, 1, added("Likes tea."), added("Use tabs.", "memory"))
    ctx = LoadContext(session_id="", session_key="coder@ann", user_id="ann", memory_scope="global")
    assert Documented(postgres_url).prefetch(ctx) == MemoryContext("Use tabs.\n\nLikes tea.")
    nobody = LoadContext(session_id="", session_key="writer@eve", personality_id="writer")
    assert Documented(postgres_url).prefetch(nobody) is None


def test_rows_of_an_older_release_are_completed(postgres_url, tmp_path, rows):
    """A table without the keys of personalities gets them when an instance opens it."""
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True) as found:
        fed(found, 1, added("Use tabs.", "memory"), scope=HERS)
    whole = rows()
    with psycopg.connect(postgres_url) as db:
        db.execute("delete from memorybus.memory_rows where key like '%:%'")
    assert len(rows()) == 1
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True):
        assert rows() == whole


def test_forgetting_erases_from_the_rows(provider, rows):
    """What is erased of one agent's talk goes, what the person told another stays; then all."""
    fed(provider, 1, added("Likes tea."), added("Use tabs.", "memory"))
    fed(provider, 3, added("Writes at night."), scope=HERS)
    provider.forget(RecallScope("coder", "ann"))
    assert rows() == {("ann", "user"): "Writes at night."}
    provider.forget(RecallScope(None, "ann", None))
    assert rows() == {}


def test_turns_and_repetitions_change_no_row(provider, rows):
    """Only the stores are in rows, and an event that comes again is there once (G4)."""
    events = (added("Likes tea."), TurnCompleted(user="Hello.", assistant="Hi.", ordinal=0))
    fed(provider, 1, *events)
    before = rows()
    fed(provider, 1, *events)
    assert rows() == before == {("ann", "user"): "Likes tea."}


def test_rows_begin_with_what_is_kept_already(postgres_url, tmp_path, rows):
    """An instance that gets the option later has rows of all that it remembers."""
    with opened(PostgresProvider, tmp_path, url=postgres_url) as without:
        fed(without, 1, added("Likes tea."))
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True):
        assert rows() == {("ann", "user"): "Likes tea."}


def test_an_erasure_without_the_option_erases_rows_that_are_left(postgres_url, tmp_path, rows):
    """Who switched the option off, or erases from another host, leaves nothing in the rows."""
    with opened(PostgresProvider, tmp_path, url=postgres_url, memory_rows=True) as found:
        fed(found, 1, added("Likes tea."))
    with opened(PostgresProvider, tmp_path, url=postgres_url) as without:
        without.forget(RecallScope(None, "ann", None))
    assert rows() == {}


def test_the_option_is_a_flag(tmp_path):
    """A text is no answer."""
    options = {"memory_rows": "yes"}
    with pytest.raises(ConfigError, match="memory_rows"):
        PostgresProvider(ProviderConfig(name="p", home=tmp_path, options=options))
