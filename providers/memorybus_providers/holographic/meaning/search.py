"""Search by words and by meaning: the words' answer, fused with the facts near the question."""

import sqlite3

from memorybus.clock import Clock

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.meaning.embedder import Embedder, Vector, embedded
from memorybus_providers.holographic.meaning.fusion import fused
from memorybus_providers.holographic.meaning.nearest import Near, Nearest
from memorybus_providers.holographic.meaning.options import MeaningOptions
from memorybus_providers.holographic.meaning.question import AskedFor, QuestionVectors
from memorybus_providers.holographic.meaning.tables import VectorTables
from memorybus_providers.holographic.ranking import Scored
from memorybus_providers.holographic.recall import FactSearch

NEAREST = 50
"""Facts that are near a question and stand for selection (G10)."""


class MeaningSearch(FactSearch):
    """Answers questions from the database, by words and by meaning.

    The vector of the question is asked for before the words are searched, and waited for after. If
    it does not come, or the vectors are of another model, words alone answer.
    """

    def __init__(
        self, db: sqlite3.Connection, embedder: Embedder, options: MeaningOptions, clock: Clock
    ) -> None:
        """Read through `db`."""
        super().__init__(db)
        self._embedder = embedder
        self._prefix = options.embedder_question
        self._wait = options.embedder_wait
        self._questions = QuestionVectors(self._embedded, clock)
        self._tables = VectorTables(db)
        self._nearest = Nearest(db)

    def close(self) -> None:
        """End the thread that asks for vectors."""
        self._questions.close()

    def answer(self, text: str, scope: RecallScope, about: str = "") -> list[Scored]:
        """Return the facts within `scope` that answer a question (see `FactSearch.answer`)."""
        asked = self._questions.ask(text)
        by_words = super().answer(text, scope, about)
        near = self._near(asked, scope)
        if not near:
            return by_words
        by_meaning = self.weighed(text, {one.fact: one.cosine for one in near}, scope, about)
        return fused(by_words, by_meaning)

    def _near(self, asked: AskedFor, scope: RecallScope) -> list[Near]:
        model = self._tables.model()
        if model is None or model.name != self._embedder.model:
            return []
        vector = asked.within(self._wait)
        if vector is None or vector.size != model.size:
            return []
        return self._nearest.among(self.scopes(scope), vector, model.floor, NEAREST)

    def _embedded(self, text: str) -> Vector:
        return embedded(self._embedder, f"{self._prefix}{text}")
