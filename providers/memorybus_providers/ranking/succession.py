"""Decides which fact replaces which, by explicit corrections and replacements alone; pure.

The newer fact comes first, and the older one gets an end. Stores keep corrections and former
entries in addition to the facts.
"""

from collections.abc import Sequence

import msgspec

from memorybus_providers.ranking.ranking import Fact, Scored

LONGEST_BEFORE = 200  # the most characters of `before` that are shown (G10)

_LIFT_FACTOR = 1.001


class Correction(msgspec.Struct, frozen=True):
    """A correction: the fact that was wrong, and the note that replaces it."""

    fact: str  # the name of the corrected fact; empty if it is known by its text
    old: str  # a text that it contains; empty if it is known by its name
    note: str  # the name of the note that is true instead
    at: int  # when it was corrected, milliseconds

    def corrects(self, fact: Fact) -> bool:
        """Whether this corrects a fact: the fact existed before, and is not the note itself."""
        if fact.name == self.note:
            return False
        if self.fact:
            return fact.name == self.fact
        return fact.at <= self.at and self.old in fact.content


class FormerEntry(msgspec.Struct, frozen=True):
    """An entry that is no longer in its store."""

    fact: Fact  # what it said; its row number is below zero, so it differs from that of every fact
    until: int  # when it was replaced or removed, milliseconds
    successor: str  # the name of the fact that replaced it; empty if it was removed


class Succession(msgspec.Struct, frozen=True):
    """A fact that replaces another, and when the older one ceased to be true, milliseconds."""

    older: Fact
    newer: Fact
    until: int


def apply_successions(found: Sequence[Scored], successions: Sequence[Succession]) -> list[Scored]:
    """Return what was found, each newer fact before the one that it replaces, both marked.

    A newer fact that was not found itself is added with the score of the fact that it replaces.
    """
    scored = {one.fact.id: one for one in found}
    for succession in successions:
        old = scored.get(succession.older.id)
        if old is not None:
            new = scored.get(succession.newer.id) or Scored(succession.newer, 0.0)
            score = max(new.score, old.score * _LIFT_FACTOR)
            parts = {**new.parts, "newer": score - new.score} if score > new.score else new.parts
            scored[succession.newer.id] = msgspec.structs.replace(new, score=score, parts=parts)
    for succession in sorted(successions, key=lambda one: _order_key(one.older)):
        before = _short(succession.older.content)
        for fact, marks in (
            (succession.older, {"until": succession.until}),
            (succession.newer, {"before": before}),
        ):
            if fact.id in scored:
                scored[fact.id] = msgspec.structs.replace(scored[fact.id], **marks)
    return sorted(scored.values(), key=lambda one: -one.score)


def _order_key(fact: Fact) -> tuple[int, tuple[int, int], int]:
    return fact.at, fact.place or (-1, -1), fact.id


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_BEFORE else f"{line[: LONGEST_BEFORE - 1]}…"
