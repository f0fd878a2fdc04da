"""The Postgres provider: its options, and how an instance is opened; the rest is `FactProvider`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

from memorybus.errors import MissingProvider, install_command
from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext, Placement, ProviderConfig
from memorybus_providers.embedding.options import read_meaning
from memorybus_providers.fact_provider import FactProvider, missing_library
from memorybus_providers.postgres.options import PostgresOptions, schema_rows, where_of

if TYPE_CHECKING:  # they import numpy and psycopg, which other processes do not need
    from memorybus_providers.postgres.meaning.meaning import PostgresMeaning
    from memorybus_providers.postgres.store import PostgresStore


class PostgresProvider(FactProvider):
    """Keeps facts in a schema of a PostgreSQL server, and finds them as `holographic` does.

    Its placement is ``shared``: any number of workers write their lanes and recall, and no lane
    waits for another. It keeps no state of a connection between transactions, so it may use a
    pooler in transaction mode. A broken connection is replaced at the next transaction.
    """

    kind: ClassVar[str] = "postgres"
    placement: ClassVar[Placement] = "shared"
    fresh_options: ClassVar[tuple[str, ...]] = ("schema",)
    tunable: ClassVar[frozenset[str]] = frozenset({"schema"})

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; nothing is connected before `open`.

        Raises:
            ConfigError: an option is wrong.
            MissingProvider: psycopg is not installed.
        """
        super().__init__(config)
        try:
            import psycopg  # noqa: F401  only to find out whether it is installed
        except ImportError as error:
            raise MissingProvider(
                f"provider {config.name}: {error.name} is missing; run: "
                f"{install_command('postgres')}"
            ) from error
        options = read_meaning(config, PostgresOptions)
        self._where = where_of(config, options)
        self._options, self._keeps_rows = options, options.memory_rows
        self._rows: PostgresStore | None = None

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options, with those of search by meaning."""
        return schema_rows()

    def open(self) -> None:
        """Make the tables if they are missing; the store connects when it is first used.

        Raises:
            Unavailable: the server is away or refuses us, a newer release wrote the tables, or the
                key of the embedder is missing.
            MissingProvider: a library that the embedder needs is not installed.
        """
        if self.facts is not None:
            return
        from memorybus_providers.postgres import memory_rows
        from memorybus_providers.postgres.link import Link
        from memorybus_providers.postgres.migrations import migrate
        from memorybus_providers.postgres.store import PostgresStore

        meaning = self._meaning_of() if self._options.embedder else None
        migrate(self._where)
        if self._keeps_rows:
            with closing(Link(self._where)) as link:
                memory_rows.prepare(link)
        store = (
            PostgresStore(self._where, meaning.make_search)
            if meaning
            else PostgresStore(self._where)
        )
        self.facts = store
        self._rows = store if self._keeps_rows else None
        self.meaning = meaning

    # -- memory_rows --------------------------------------------------------------------------

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Apply a write to one of the agent's stores, and refresh its row if rows are kept."""
        super().on_memory_write(event, ctx)
        self._refresh(ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in these events, and refresh the rows if rows are kept."""
        super().retract(event_ids, ctx)
        self._refresh(ctx)

    def _refresh(self, ctx: HookContext) -> None:
        if self._rows is not None:
            self._rows.keep_rows(ctx.scope)

    def _meaning_of(self) -> "PostgresMeaning":
        try:
            from memorybus_providers.postgres.meaning.meaning import PostgresMeaning

            return PostgresMeaning(self._where, self.config, self._options)
        except ImportError as error:
            raise missing_library(self.config, self._options, error) from error
