"""The interface for comparing meaning: which facts are nearest to a question, and how near."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

from memorybus_providers.base import RecallScope


class MeaningComparison(Protocol):
    """Facts that were compared with a question."""

    def nearest(self) -> Sequence[int]:
        """Return the rows of the nearest facts, nearest first; a bounded number."""
        ...

    def nearness(self, rows: Sequence[int]) -> Mapping[int, float]:
        """Return how near some facts are, by their rows; those that have no vector are left out.

        The nearness is 0 for a fact that has nothing in common with the question, and 1 for the
        same text.
        """
        ...


class NoComparison:
    """The result if nothing was compared, so that words alone decide."""

    def nearest(self) -> Sequence[int]:
        """Return no row."""
        return ()

    def nearness(self, rows: Sequence[int]) -> Mapping[int, float]:
        """Return no nearness."""
        return MappingProxyType({})


BeginComparison: TypeAlias = Callable[[str, RecallScope], Callable[[], MeaningComparison]]
"""Begins to compare the facts of a scope with a text; returns a function that waits for it."""


def begin_no_comparison(text: str, scope: RecallScope) -> Callable[[], MeaningComparison]:
    """Compare no meaning, so that words alone decide."""
    return NoComparison
