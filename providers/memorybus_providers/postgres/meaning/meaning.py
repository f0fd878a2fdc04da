"""The search by meaning of one open instance: its embedder, its questions and its backfill."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from memorybus.ids import new_mark

from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.filled import FilledMeaning
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.vectors import Model
from memorybus_providers.finding.meaning_comparison import MeaningComparison, NoComparison
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.postgres.finding.source import PostgresFacts
from memorybus_providers.postgres.link import Connection, Link
from memorybus_providers.postgres.meaning.tables import (
    PostgresComparison,
    PostgresVectorTables,
    model_of,
)
from memorybus_providers.postgres.options import Where


class PostgresMeaning(FilledMeaning):
    """What an instance with an embedder has in addition to its store.

    Args:
        where: where the tables are.
        config: the configuration of the instance.
        options: its options, which name an embedder.
    """

    def __init__(self, where: Where, config: ProviderConfig, options: MeaningOptions) -> None:
        who = new_mark()
        super().__init__(lambda: _open_exclusively(where, who), config, options)

    def make_search(self, db: Connection, source: PostgresFacts) -> FactSearch:
        """Return a search by words and meaning in the transaction that is open."""

        def begin_comparison(text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
            model = model_of(db)
            wait = self.ask(text, model)
            return lambda: _compare(db, source.scopes(scope), wait(), model)

        return FactSearch(source, begin_comparison)


def _compare(
    db: Connection, scopes: list[int], vector: Vector | None, model: Model | None
) -> MeaningComparison:
    if vector is None or model is None:
        return NoComparison()
    return PostgresComparison(db, scopes, vector, model)


class _TurnTables(PostgresVectorTables):
    """The tables for one of several backfills, which renews its claim as long as it fills them.

    If it pauses for a minute, or dies, another backfill takes over; facts that both send to the
    embedder meanwhile are stored once.
    """

    def __init__(self, link: Link, where: Where, who: str) -> None:
        super().__init__(link, where)
        self._who = who

    def model(self) -> Model | None:
        """Renew the claim to fill, and return the model."""
        self.claim(self._who)
        return super().model()


@contextmanager
def _open_exclusively(where: Where, who: str) -> Iterator[PostgresVectorTables | None]:
    """Open the vectors for a backfill, unless another one fills them."""
    with closing(Link(where)) as link:
        tables = _TurnTables(link, where, who)
        tables.prepare()
        yield tables if tables.claim(who) else None
