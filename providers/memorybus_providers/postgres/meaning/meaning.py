"""Search by meaning of one open instance: its embedder, questions, and what fills in vectors."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from memorybus.ids import new_mark

from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.embedding.embedder import Vector, embedded
from memorybus_providers.embedding.filled import FilledMeaning
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.questions import AskedFor, QuestionVectors
from memorybus_providers.embedding.vectors import NEAREST, Model, nearness_of
from memorybus_providers.finding.search import FactSearch
from memorybus_providers.postgres.finding.source import PostgresFacts
from memorybus_providers.postgres.link import Connection, Link
from memorybus_providers.postgres.meaning.tables import VectorTables, model_of, nearest
from memorybus_providers.postgres.options import Where


class PostgresMeaning(FilledMeaning):
    """What an instance with an embedder has beside its store.

    Args:
        where: the tables.
        config: the instance.
        options: its options, with an embedder.
    """

    def __init__(self, where: Where, config: ProviderConfig, options: MeaningOptions) -> None:
        """Choose the embedder; see `FilledMeaning`."""
        who = new_mark()
        super().__init__(lambda: _alone(where, who), config, options)
        self._questions = QuestionVectors(self._embedded, config.clock)

    def searching(self, db: Connection, source: PostgresFacts) -> FactSearch:
        """Return a search by words and meaning in the transaction that is open."""

        def look(text: str, scope: RecallScope) -> Callable[[], Mapping[int, float]]:
            model = model_of(db)
            if model is None or model.name != self._model:
                return dict
            asked = self._questions.ask(text)
            return lambda: self._near(db, source.scopes(scope), asked, model)

        return FactSearch(source, look)

    def _near(
        self, db: Connection, scopes: list[int], asked: AskedFor, model: Model
    ) -> dict[int, float]:
        vector = asked.within(self._options.embedder_wait)
        if vector is None or vector.size != model.size:
            return {}
        return nearness_of(nearest(db, scopes, vector, model.chance, NEAREST))

    def _end_searches(self) -> None:
        self._questions.close()

    def _embedded(self, text: str) -> Vector:
        return embedded(self._embedder, f"{self._options.embedder_question}{text}")


class _Turns(VectorTables):
    """The tables for one of several fillers: it keeps its turn as long as it fills.

    One that pauses for a minute, or dies, leaves it to another; facts that both send to the
    embedder for a moment are stored once.
    """

    def __init__(self, link: Link, where: Where, who: str) -> None:
        """Be known as `who`."""
        super().__init__(link, where)
        self._who = who

    def model(self) -> Model | None:
        """Go on being the one that fills, and return the model."""
        self.claimed(self._who)
        return super().model()


@contextmanager
def _alone(where: Where, who: str) -> Iterator[VectorTables | None]:
    """Open the vectors for a filler, unless another one fills them."""
    with closing(Link(where)) as link:
        tables = _Turns(link, where, who)
        tables.prepare()
        yield tables if tables.claimed(who) else None
