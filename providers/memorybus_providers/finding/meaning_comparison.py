"""The interface for comparing meaning: which facts are nearest to a question, and how near."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

from memorybus_providers.base import RecallScope
from memorybus_providers.ranking.facts import SearchPool
from memorybus_providers.ranking.nearness import Near, Spread


class MeaningComparison(Protocol):
    """Facts that were compared with a question."""

    def nearest(self, pool: SearchPool) -> Sequence[int]:
        """Return the rows of the nearest facts of a pool, nearest first; a bounded number."""
        ...

    def nearness(self, rows: Sequence[int]) -> Mapping[int, Near]:
        """Return how near some facts are, by their rows; those that have no vector are left out."""
        ...


def near_by_cosine(
    nearness: Callable[[float], float], cosines: Mapping[int, float], facts: int, *usual: float
) -> dict[int, Near]:
    """Return how near some facts are, by their rows.

    Args:
        nearness: that of a cosine, which depends on the model.
        cosines: those of the facts.
        facts: how many facts of the scope were compared.
        usual: the mean and the standard deviation of their cosines.
    """
    mean, deviation = usual
    spread = Spread(facts, nearness(mean), nearness(mean + deviation) - nearness(mean))
    return {fact: spread.near(nearness(cosine)) for fact, cosine in cosines.items()}


class NoComparison:
    """The result if nothing was compared, so that words alone decide."""

    def nearest(self, pool: SearchPool) -> Sequence[int]:
        """Return no row."""
        return ()

    def nearness(self, rows: Sequence[int]) -> Mapping[int, Near]:
        return MappingProxyType({})


BeginComparison: TypeAlias = Callable[[str, RecallScope], Callable[[], MeaningComparison]]
"""Begins to compare the facts of a scope with a text; returns a function that waits for it."""


def begin_no_comparison(text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
    """Compare no meaning, so that words alone decide."""
    return NoComparison
