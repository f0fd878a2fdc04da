"""The questions that a store answers about its facts; all else is decided here, for all stores.

Every question names whose facts may be seen. A store returns nothing else.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.language.times import Period
from memorybus_providers.language.unknown_words import TokenSpan
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.trust import trust_of
from memorybus_providers.truth.changes import Correction, FormerEntry

LATEST: Final = (1 << 63) - 1
"""A time that nothing is later than, as far as a database can tell."""

MOST = 500
"""Facts that one list holds at most, the newest (G10)."""

KEPT = 100
"""Kept facts that are looked at where nothing is asked, the newest (G10)."""

SAID = 10
SESSIONS = 3
"""What people said that is looked at then: so much of so many sessions, the newest (G10)."""

RECENT = 500
"""Sessions that came last, among which these are looked for (G10)."""


class View(msgspec.Struct, frozen=True):
    """What a question may see.

    Attributes:
        whose: whose facts.
        about: only what this person said, and kept facts that name the person; folded, empty for
            everything.
        known_by: only what was said until then, milliseconds.
    """

    whose: RecallScope
    about: str = ""
    known_by: int = LATEST

    @property
    def narrowed(self) -> bool:
        """Whether it sees less than all facts of the scope."""
        return bool(self.about) or self.known_by != LATEST


class Extent(msgspec.Struct, frozen=True):
    """How many facts there are, and by what the store knows the scopes that hold any."""

    facts: int
    scopes: Sequence[str]


class FactSource(Protocol):
    """Reads facts. Lists hold `MOST` facts, the newest first, if nothing else is said."""

    # -- what a search is made of -------------------------------------------------------------

    def extent(self, whose: RecallScope) -> Extent:
        """Return how much there is."""
        ...

    def speakers(self, words: Sequence[str], whose: RecallScope) -> frozenset[str]:
        """Return those of some folded words that are part of a speaker's name."""
        ...

    def tokens(
        self, spans: Sequence[TokenSpan], scopes: Sequence[str], most: int
    ) -> Iterable[tuple[int, str, str, int]]:
        """Return the tokens within spans: the span's number, scope, token, facts that hold it."""
        ...

    def matching_rows(
        self, terms: Sequence[Sequence[str]], scopes: Sequence[str], view: View
    ) -> Iterable[Sequence[int]]:
        """Return for each term, which is some tokens, the rows of the facts that hold one."""
        ...

    def visible_rows(self, rows: Sequence[int], view: View) -> list[int]:
        """Return those of some rows that a view sees."""
        ...

    def rows_said_within(
        self, periods: Sequence[Period], most: int, view: View
    ) -> Sequence[Sequence[int]]:
        """Return for each period the newest `most` rows of what was said in it."""
        ...

    def facts_with_neighbours(self, rows: Sequence[int], reach: int, view: View) -> Iterable[Fact]:
        """Return the facts of some rows, and the utterances up to `reach` around each."""
        ...

    # -- lists --------------------------------------------------------------------------------

    def facts_holding(
        self,
        phrases: Iterable[Sequence[str]],
        whose: RecallScope,
        *,
        most: int = MOST,
        as_of: int | None = None,
    ) -> list[Fact]:
        """Return facts that hold all words of one of some phrases, in whatever order.

        Args:
            phrases: each as its folded words.
            whose: whose facts.
            most: how many at most.
            as_of: only what was said until then, milliseconds; everything if None.
        """
        ...

    def facts_said_by(self, names: Iterable[str], whose: RecallScope) -> list[Fact]:
        """Return what speakers said who have one of these folded words in their name."""
        ...

    def kept_facts(self, category: str, whose: RecallScope) -> list[Fact]:
        """Return facts that somebody chose to keep; those of one category, if one is given."""
        ...

    def facts_by_name(self, names: Iterable[str], whose: RecallScope) -> dict[str, Fact]:
        """Return the facts that have one of these names (see `ranking.facts`), by name."""
        ...

    def utterances_around(self, fact: Fact, reach: int, whose: RecallScope) -> list[Fact]:
        """Return what was said from `reach` utterances before a fact to as many after it."""
        ...

    def essentials(self, view: View) -> Iterable[Fact]:
        """Return the newest `KEPT` kept facts, and what people said last: `SAID`, `SESSIONS`.

        A session is as new as the newest that a person said in it, whenever it came to the store.
        """
        ...

    # -- what changed -------------------------------------------------------------------------

    def corrections(self, whose: RecallScope) -> list[Correction]:
        """Return corrections, the newest first; a bounded number."""
        ...

    def former_entries(self, whose: RecallScope) -> list[FormerEntry]:
        """Return former entries of the stores, those that ended last first; a bounded number."""
        ...

    def was_said_between(self, fact: Fact, after: int, until: int) -> bool:
        """Say whether a note was said again after a time, and until another."""
        ...


def newest_of_each(
    found: Iterable[tuple[int, int, int]], periods: int, most: int
) -> list[list[int]]:
    """Return the newest `most` rows of each of some periods, from (period, time, row)."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(periods)]
    for period, at, row in found:
        rows[period].append((at, row))
    return [[row for _, row in sorted(some, reverse=True)[:most]] for some in rows]


def fact_of(
    row: int, session: int, seq: int | None, helpful: int, unhelpful: int, *more: Any
) -> Fact:
    """Return a fact from its columns, in the order of `Fact` from its name on."""
    place = None if seq is None else (session, seq)
    return Fact(row, place, trust_of(helpful, unhelpful), *more)
