"""What a search asks about the meaning of facts: which are nearest to a question, and how near."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

from memorybus_providers.base import RecallScope


class Compared(Protocol):
    """Facts that were compared with a question."""

    def nearest(self) -> Sequence[int]:
        """Return the rows of the nearest facts, nearest first; a bounded number."""
        ...

    def nearness(self, rows: Sequence[int]) -> Mapping[int, float]:
        """Return how near some facts are, by their rows; those that have no vector are left out.

        It is 0 for what has nothing in common with the question, and 1 for the same text.
        """
        ...


class Uncompared:
    """Nothing was compared: words alone answer."""

    def nearest(self) -> Sequence[int]:
        """Return no row."""
        return ()

    def nearness(self, rows: Sequence[int]) -> Mapping[int, float]:
        """Say of no fact how near it is."""
        return MappingProxyType({})


Nearby: TypeAlias = Callable[[str, RecallScope], Callable[[], Compared]]
"""Begins to compare the facts of a scope with a text, and returns what waits for the result."""


def nothing_near(text: str, scope: RecallScope) -> Callable[[], Compared]:
    """Compare words alone."""
    return Uncompared
