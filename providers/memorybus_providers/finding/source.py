"""The questions that a store answers about its facts; this package decides everything else.

Every question names the scope whose facts may be seen. A store returns no other facts.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.deriving.deriver import KnownConclusion
from memorybus_providers.language.times import Period
from memorybus_providers.language.unknown_words import TokenSpan
from memorybus_providers.ranking.facts import SearchPool
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.succession import Correction, FormerEntry
from memorybus_providers.ranking.trust import trust_of

LATEST_STORABLE: Final = (1 << 63) - 1  # the latest time that a database can store

MAX_FACTS = 500  # the most facts of one list, the newest (G10)

MAX_KEPT = 100  # the most kept facts that are read if nothing is asked, the newest (G10)

MAX_SAID = 50
MAX_SESSIONS = 20
"""The most utterances of people that are read then of each session, and of how many sessions, the
newest (G10)."""

MAX_RECENT_SESSIONS = 500  # the most sessions among which these are chosen, the last ones (G10)


MAX_CONCLUSIONS = 100
MAX_PASSAGES = 600
MAX_SUMMARIES = 500
"""The most conclusions of one kind and deriver that are read, the most passages of one session, and
the most summaries of a scope, the newest (G10)."""


class View(msgspec.Struct, frozen=True):
    """What a question may see.

    Attributes:
        about: only what this person said, and kept facts that name the person (folded); empty for
            everything.
    """

    scope: RecallScope  # whose facts
    about: str = ""
    known_by: int = LATEST_STORABLE  # only what was said until this time, milliseconds
    left_out: frozenset[int] = frozenset()  # rows that are not searched

    @property
    def narrowed(self) -> bool:
        """Whether it sees less than all facts of the scope."""
        return bool(self.about) or self.known_by != LATEST_STORABLE


class SessionSummary(msgspec.Struct, frozen=True):
    """The newest summary that a deriver made of a session."""

    row: int  # the session's row, the first part of the places of its facts
    session: str
    root: str
    text: str


class Extent(msgspec.Struct, frozen=True):
    """How many facts there are, and the store's ids of the scopes that have any."""

    facts: int
    scopes: Sequence[str]


class FactSource(Protocol):
    """Reads facts. A list has at most `MAX_FACTS`, the newest first, unless a method differs."""

    # -- what a search is made of -------------------------------------------------------------

    def extent(self, scope: RecallScope, pool: SearchPool = "talk") -> Extent:
        """Return how many facts there are in a pool, and their scopes."""
        ...

    def speakers(self, words: Sequence[str], scope: RecallScope) -> frozenset[str]:
        """Return those of some folded words that are part of a speaker's name."""
        ...

    def tokens(
        self, spans: Sequence[TokenSpan], scopes: Sequence[str], most: int
    ) -> Iterable[tuple[int, str, str, int]]:
        """Return the tokens within spans: span number, scope, token, and how many facts have it."""
        ...

    def matching_rows(
        self, terms: Sequence[Sequence[str]], scopes: Sequence[str], view: View
    ) -> Iterable[Sequence[int]]:
        """Return for each term, given as tokens, the rows of the facts that contain one of them."""
        ...

    def visible_rows(self, rows: Sequence[int], view: View) -> list[int]:
        """Return the rows among these that a view may see."""
        ...

    def rows_said_within(
        self, periods: Sequence[Period], most: int, view: View
    ) -> Sequence[Sequence[int]]:
        """Return for each period the newest `most` rows of what was said in it."""
        ...

    def facts_with_neighbours(self, rows: Sequence[int], reach: int, view: View) -> Iterable[Fact]:
        """Return the facts of some rows, and the utterances up to `reach` around each.

        Nothing is read around a long answer, and of long answers only what follows a fact: its
        first piece.
        """
        ...

    # -- lists --------------------------------------------------------------------------------

    def facts_holding(
        self,
        phrases: Iterable[Sequence[str]],
        scope: RecallScope,
        *,
        most: int = MAX_FACTS,
        as_of: int | None = None,
    ) -> list[Fact]:
        """Return facts that contain all words of at least one phrase, in any order.

        Args:
            phrases: each as its folded words.
            most: the most facts to return.
            as_of: only what was said until this time, milliseconds; everything if None.
        """
        ...

    def kept_facts(self, category: str, scope: RecallScope) -> list[Fact]:
        """Return facts that somebody chose to keep; only those of a category, if one is given."""
        ...

    def facts_by_name(self, names: Iterable[str], scope: RecallScope) -> dict[str, Fact]:
        """Return the facts that have one of these names (see `ranking.facts`), by name."""
        ...

    def utterances_around(self, fact: Fact, reach: int, scope: RecallScope) -> list[Fact]:
        """Return what was said from `reach` utterances before a fact to as many after it."""
        ...

    def essentials(self, view: View) -> Iterable[Fact]:
        """Return the newest kept facts for prompts, and what people said last.

        Their bounds are `MAX_KEPT` and `MAX_SAID`.

        A session is as new as a person's newest utterance in it, whenever that came to the store.
        """
        ...

    # -- what was concluded -------------------------------------------------------------------

    def conclusions(self, session: str, scope: RecallScope) -> list[KnownConclusion]:
        """Return conclusions about a session and its person, the newest first."""
        ...

    def summaries(self, scope: RecallScope) -> list[SessionSummary]:
        """Return the newest summary of each session and deriver: the newest `MAX_SUMMARIES`."""
        ...

    def said_in(self, session: str, root: str, known_by: int, scope: RecallScope) -> list[Fact]:
        """Return the newest `MAX_PASSAGES` passages of a session until a time, in order."""
        ...

    def sources_of(self, rows: Sequence[int], scope: RecallScope) -> dict[int, set[str]]:
        """Return the events from which conclusions came, by the conclusions' rows."""
        ...

    # -- what changed -------------------------------------------------------------------------

    def corrections(self, scope: RecallScope) -> list[Correction]:
        """Return corrections, the newest first; a bounded number."""
        ...

    def former_entries(self, scope: RecallScope) -> list[FormerEntry]:
        """Return former entries of the stores, those that ended last first; a bounded number."""
        ...

    def out_of_prompts(self, scope: RecallScope) -> frozenset[int]:
        """Return the rows of archived facts, without those that were used since."""
        ...

    def was_said_between(self, fact: Fact, after: int, until: int) -> bool:
        """Return whether a note was said again after a time, and until another."""
        ...


def newest_of_each(
    found: Iterable[tuple[int, int, int]], periods: int, most: int
) -> list[list[int]]:
    """Return the newest `most` rows of each of some periods, from (period, time, row)."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(periods)]
    for period, at, row in found:
        rows[period].append((at, row))
    return [[row for _, row in sorted(some, reverse=True)[:most]] for some in rows]


def events_by_row(found: Iterable[tuple[int, str]]) -> dict[int, set[str]]:
    """Return the events of each row, from (row, event)."""
    events: dict[int, set[str]] = {}
    for row, event in found:
        events.setdefault(row, set()).add(event)
    return events


def fact_of(
    row: int, session: int, seq: int | None, helpful: int, unhelpful: int, *more: Any
) -> Fact:
    """Return a fact from its columns, in the order of `Fact` from its name on."""
    place = None if seq is None else (session, seq)
    return Fact(row, place, trust_of(helpful, unhelpful), *more)
