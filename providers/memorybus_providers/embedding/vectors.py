"""What a store of vectors does, and which facts its vectors bring near a question; pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.floor import Chance

NEAREST = 20
"""Facts that are near a question and stand for selection (G10)."""

FALLS_OFF = 0.5
"""A fact counts as near if it is at least so near as this share of the nearest one's nearness."""


class Model(msgspec.Struct, frozen=True):
    """Which model made the vectors.

    Attributes:
        name: its name.
        size: numbers of each vector.
        chance: how near its texts are to each other by chance.
    """

    name: str
    size: int
    chance: Chance


class Missing(msgspec.Struct, frozen=True):
    """A fact without a vector: its place in the queue, and its text."""

    ticket: int
    content: str


class Near(msgspec.Struct, frozen=True):
    """A fact's row, its cosine with what is asked, and the cosine of the nearest by chance."""

    fact: int
    cosine: float
    floor: float


class VectorStore(Protocol):
    """The vectors beside the facts of a store, as who fills them in sees them."""

    def prepare(self) -> None:
        """Make what is needed, if it is missing; every fact there is is queued."""
        ...

    def model(self) -> Model | None:
        """Return the model of the vectors; None if there are none."""
        ...

    def name_model(self, model: Model) -> None:
        """Say which model all vectors from now on are of."""
        ...

    def missing(self, most: int) -> list[Missing]:
        """Return facts without a vector, the newest first."""
        ...

    def keep(self, tickets: Sequence[Missing], vectors: Iterable[Vector]) -> None:
        """Store vectors; those of facts that have gone meanwhile are dropped.

        Args:
            tickets: the facts.
            vectors: one for each, of length one; one of size 0 says that there can be none.
        """
        ...

    def counts(self) -> tuple[int, int]:
        """Return how many facts have no vector yet, and how many have one."""
        ...


def nearness_of(found: Iterable[Near]) -> dict[int, float]:
    """Return how near facts are, from 0 to 1, by their rows; those far behind the first are none.

    Args:
        found: facts that are nearer than by chance.
    """
    near = {one.fact: min(1.0, (one.cosine - one.floor) / (1 - one.floor)) for one in found}
    least = FALLS_OFF * max(near.values(), default=0.0)
    return {fact: nearness for fact, nearness in near.items() if nearness >= least}
