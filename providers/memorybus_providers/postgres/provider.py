"""The Postgres provider: its options and its life; the rest is `FactProvider`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

from memorybus.errors import MissingProvider
from memorybus.events import MemoryWritten

from memorybus_providers.base import HookContext, Placement, ProviderConfig
from memorybus_providers.fact_provider import FactProvider, missing_library
from memorybus_providers.postgres import options

if TYPE_CHECKING:  # numpy is imported by who has an embedder
    from memorybus_providers.postgres.meaning.meaning import PostgresMeaning
    from memorybus_providers.postgres.store import PostgresStore


class PostgresProvider(FactProvider):
    """Facts in a schema of a PostgreSQL server, found as `holographic` finds them.

    It is a `FactProvider` of placement ``shared``: any number of workers write their lanes and
    recall, and no lane waits for another. Nothing is held of the server between transactions, so a
    pooler in transaction mode may stand before it; a connection that broke is made anew with the
    next transaction.
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
            import psycopg  # noqa: F401  nothing is asked of it yet
        except ImportError as error:
            raise MissingProvider(
                f"provider {config.name}: {error.name} is missing; install it with: "
                "pip install 'memorybus[postgres]'"
            ) from error
        self._where = options.read_where(config)
        self._options = options.meaning_options(config)
        self._keeps_rows = options.keeps_rows(config)
        self._rows: PostgresStore | None = None
        self.embeds_by_service = self._options.by_service

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return options.SCHEMA

    def open(self) -> None:
        """Make the tables if they are missing.

        Raises:
            Unavailable: the server is away or refuses us, a newer release wrote the tables, or the
                key of the embedder is missing.
            MissingProvider: what the embedder needs is not installed.
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
        """Follow the agent's store, and keep its row."""
        super().on_memory_write(event, ctx)
        self._refresh(ctx)

    def retract(self, event_ids: Sequence[str], ctx: HookContext) -> None:
        """Forget what was said in some events, in the rows of the stores, too."""
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
