"""The search by meaning of one open instance: its embedder, its questions and its filler."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from memorybus.ids import new_mark

from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.embedding.embedder import Vector, embed_text
from memorybus_providers.embedding.filled import FilledMeaning
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.questions import PendingVector, QuestionVectors
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
        """Choose the embedder; see `FilledMeaning`."""
        who = new_mark()
        super().__init__(lambda: _open_exclusively(where, who), config, options)
        self._questions = QuestionVectors(self._embed_question, config.clock)

    def make_search(self, db: Connection, source: PostgresFacts) -> FactSearch:
        """Return a search by words and meaning in the transaction that is open."""

        def begin_comparison(text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
            model = model_of(db)
            if model is None or model.name != self._model:
                return NoComparison
            asked = self._questions.ask(text)
            return lambda: self._compare(db, source.scopes(scope), asked, model)

        return FactSearch(source, begin_comparison)

    def _compare(
        self, db: Connection, scopes: list[int], asked: PendingVector, model: Model
    ) -> MeaningComparison:
        vector = asked.wait(self._options.embedder_wait)
        if vector is None or vector.size != model.size:
            return NoComparison()
        return PostgresComparison(db, scopes, vector, model)

    def _end_searches(self) -> None:
        self._questions.close()

    def _embed_question(self, text: str) -> Vector:
        return embed_text(self._embedder, f"{self._options.embedder_question}{text}")


class _TurnTables(PostgresVectorTables):
    """The tables for one of several fillers, which renews its claim as long as it fills them.

    If it pauses for a minute, or dies, another filler takes over; facts that both send to the
    embedder meanwhile are stored once.
    """

    def __init__(self, link: Link, where: Where, who: str) -> None:
        """Claim the filling under the name `who`."""
        super().__init__(link, where)
        self._who = who

    def model(self) -> Model | None:
        """Renew the claim to fill, and return the model."""
        self.claim(self._who)
        return super().model()


@contextmanager
def _open_exclusively(where: Where, who: str) -> Iterator[PostgresVectorTables | None]:
    """Open the vectors for a filler, unless another one fills them."""
    with closing(Link(where)) as link:
        tables = _TurnTables(link, where, who)
        tables.prepare()
        yield tables if tables.claim(who) else None
