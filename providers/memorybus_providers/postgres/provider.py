"""The Postgres provider: its options and its life; the rest is `FactProvider`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from memorybus.errors import MissingProvider

from memorybus_providers.base import Placement, ProviderConfig
from memorybus_providers.fact_provider import FactProvider, lacking
from memorybus_providers.postgres import options

if TYPE_CHECKING:  # numpy is imported by who has an embedder
    from memorybus_providers.postgres.meaning.meaning import PostgresMeaning


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
        self._where = options.where(config)
        self._options = options.meaning(config)
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
        from memorybus_providers.postgres.migrations import migrate
        from memorybus_providers.postgres.store import PostgresStore

        meaning = self._meaning_of() if self._options.embedder else None
        migrate(self._where)
        self.facts = (
            PostgresStore(self._where, meaning.searching) if meaning else PostgresStore(self._where)
        )
        self.meaning = meaning

    def _meaning_of(self) -> "PostgresMeaning":
        try:
            from memorybus_providers.postgres.meaning.meaning import PostgresMeaning

            return PostgresMeaning(self._where, self.config, self._options)
        except ImportError as error:
            raise lacking(self.config, self._options, error) from error
