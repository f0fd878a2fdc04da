"""Decides which found facts are true now: what was corrected or replaced comes after what holds.

At each recall it is derived from corrections and former entries which fact replaces which. Nothing
is guessed from what two texts have in common: "Nora is a teacher" does not end "Nora is allergic to
penicillin". Nothing is marked in the store, so the order of events makes no difference (G8), and a
fact that was taken back no longer counts.
"""

from collections.abc import Iterable, Sequence

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import LATEST_STORABLE, FactSource
from memorybus_providers.language.query import Term, stems
from memorybus_providers.ranking.ranking import Fact, Scored
from memorybus_providers.ranking.succession import Succession, apply_successions

MAX_EXAMINED = 15  # the most found facts, the best ones, for which replacements are looked up (G10)


class FactValidity:
    """Decides which facts are true now; it only reads."""

    def __init__(self, source: FactSource) -> None:
        self._source = source

    def settle(
        self, found: Sequence[Scored], scope: RecallScope, as_of: int | None = None
    ) -> list[Scored]:
        """Return what was found, with true facts first, and facts that no longer hold marked.

        Args:
            found: what was found, best first.
            as_of: the time for which it is asked what was true, milliseconds; None for now.
        """
        best = [one.fact for one in found[:MAX_EXAMINED]]
        known_by = LATEST_STORABLE if as_of is None else as_of
        successions = [
            *self._corrections_of(best, scope, known_by),
            *self._replacements_of(best, scope, known_by),
        ]
        return apply_successions(found, successions) if successions else list(found)

    def mark(self, facts: Sequence[Fact], scope: RecallScope) -> list[Scored]:
        """Return facts in the order given, marked as `settle` marks them."""
        given = [Scored(fact, 1 / place) for place, fact in enumerate(facts, start=1)]
        settled = {one.fact.id: one for one in self.settle(given, scope)}
        return [settled[fact.id] for fact in facts]

    def entries_as_of(self, terms: Iterable[Term], scope: RecallScope, as_of: int) -> list[Fact]:
        """Return the former entries that held at a time and contain one of some terms."""
        asked = {term.stem for term in terms}
        there = [
            entry.fact
            for entry in self._source.former_entries(scope)
            if entry.fact.at <= as_of < entry.until
        ]
        return [fact for fact in there if not asked.isdisjoint(stems(fact.content))]

    def _corrections_of(
        self, best: Iterable[Fact], scope: RecallScope, known_by: int
    ) -> list[Succession]:
        made = [
            correction
            for correction in self._source.corrections(scope)
            if correction.at <= known_by
        ]
        meant = [
            (correction, fact) for correction in made for fact in best if correction.corrects(fact)
        ]
        notes = (
            self._source.facts_by_name({correction.note for correction, _ in meant}, scope)
            if meant
            else {}
        )
        return [
            Succession(fact, notes[correction.note], correction.at)
            for correction, fact in meant
            if correction.note in notes
            and not self._source.was_said_between(fact, correction.at, known_by)
        ]

    def _replacements_of(
        self, best: Iterable[Fact], scope: RecallScope, known_by: int
    ) -> list[Succession]:
        facts = {fact.name: fact for fact in best if fact.place is None}
        return [
            Succession(entry.fact, facts[entry.successor], entry.until)
            for entry in self._source.former_entries(scope)
            if entry.successor in facts and entry.fact.name != entry.successor
            if entry.until <= known_by
        ]
