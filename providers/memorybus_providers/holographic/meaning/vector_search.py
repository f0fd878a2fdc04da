"""Compares the facts of a scope with a question by meaning, from the text to the nearest facts."""

import sqlite3
from collections.abc import Callable

from memorybus.clock import Clock

from memorybus_providers.base import RecallScope
from memorybus_providers.embedding.embedder import Embedder, Vector, embed_text
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.questions import PendingVector, QuestionVectors
from memorybus_providers.embedding.vectors import Model
from memorybus_providers.finding.meaning_comparison import MeaningComparison, NoComparison
from memorybus_providers.holographic.meaning.tables import SqliteVectorTables
from memorybus_providers.holographic.meaning.vector_index import VectorIndex
from memorybus_providers.holographic.rows import SCOPES, limits_of


class SqliteVectorSearch:
    """Compares facts with questions; a thread gets the vector of a question without delay.

    Args:
        db: the database.
        embedder: makes vectors.
        model: the name of the model of which the vectors of the facts must be.
        options: say how long a question may wait, and which prefix the model expects before it.
        clock: time.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        embedder: Embedder,
        model: str,
        options: MeaningOptions,
        clock: Clock,
    ) -> None:
        """Read through `db`."""
        self._db = db
        self._embedder = embedder
        self._model = model
        self._prefix = options.embedder_question
        self._wait = options.embedder_wait
        self._questions = QuestionVectors(self._embed_question, clock)
        self._tables = SqliteVectorTables(db)
        self._index = VectorIndex(db)

    def close(self) -> None:
        """End the thread that asks for vectors."""
        self._questions.close()

    def begin_comparison(self, text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
        """Request the vector; the returned function waits for it a moment, and compares.

        Nothing is compared if the vector does not come in time, or if the vectors of the facts are
        of another model.
        """
        model = self._tables.model()
        if model is None or model.name != self._model:
            return NoComparison
        asked = self._questions.ask(text)
        return lambda: self._compare(asked, model, scope)

    def _compare(self, asked: PendingVector, model: Model, scope: RecallScope) -> MeaningComparison:
        vector = asked.wait(self._wait)
        if vector is None or vector.size != model.size:
            return NoComparison()
        scopes = [row[0] for row in self._db.execute(SCOPES, limits_of(scope))]
        return self._index.compare(scopes, vector, model)

    def _embed_question(self, text: str) -> Vector:
        return embed_text(self._embedder, f"{self._prefix}{text}")
