"""The interface of a store of vectors, and the meaning of a cosine of its model; pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from memorybus_providers.embedding.embedder import Vector

MAX_NEAREST = 40
"""How many facts of each pool nearest to a question are ranked in addition to those found by words
(G10)."""

MAX_COMPARED = 2_000
"""Of how many facts, the newest, it is learnt how near they are to a question (G10)."""

MAX_BASELINE = 0.95
"""The highest `Model.baseline`, so that nothing is divided by zero if all texts are alike."""


class Model(msgspec.Struct, frozen=True):
    """The model that made the vectors."""

    name: str  # its name
    size: int  # how many numbers each vector has
    baseline: float  # the mean cosine of unrelated texts

    def nearness(self, cosine: float) -> float:
        """Return how near two texts are: 0 if as near as by chance, 1 if they are the same."""
        baseline = min(MAX_BASELINE, self.baseline)
        return (cosine - baseline) / (1 - baseline)


class UnembeddedFact(msgspec.Struct, frozen=True):
    """A fact without a vector: its place in the queue, and its text."""

    queue_number: int
    content: str


class VectorStore(Protocol):
    """The vectors of a store's facts, as the backfill uses them."""

    def prepare(self) -> None:
        """Make the tables if they are missing; all existing facts are queued."""
        ...

    def model(self) -> Model | None:
        """Return the model of the vectors; None if there are none."""
        ...

    def name_model(self, model: Model) -> None:
        """Record the model that makes all vectors from now on."""
        ...

    def missing(self, most: int) -> list[UnembeddedFact]:
        """Return facts without a vector, the newest first."""
        ...

    def keep(self, facts: Sequence[UnembeddedFact], vectors: Iterable[Vector]) -> None:
        """Store vectors; those of facts that were removed meanwhile are dropped.

        Args:
            facts: facts without a vector.
            vectors: one for each fact, of length one. A vector of size 0 means that the embedder
                refuses the text.
        """
        ...

    def counts(self) -> tuple[int, int]:
        """Return how many facts have no vector yet, and how many have one."""
        ...
