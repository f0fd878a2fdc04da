"""Corrections and former entries, which stores keep in addition to the facts; pure."""

import msgspec

from memorybus_providers.ranking.ranking import Fact


class Correction(msgspec.Struct, frozen=True):
    """A correction: the fact that was wrong, and the note that replaces it.

    Attributes:
        fact: the name of the corrected fact; empty if it is known by its text.
        old: a text that it contains; empty if it is known by its name.
        note: the name of the note that is true instead.
        at: when it was corrected, milliseconds.
    """

    fact: str
    old: str
    note: str
    at: int

    def corrects(self, fact: Fact) -> bool:
        """Say whether this corrects a fact: the fact existed before, and is not the note itself."""
        if fact.name == self.note:
            return False
        if self.fact:
            return fact.name == self.fact
        return fact.at <= self.at and self.old in fact.content


class FormerEntry(msgspec.Struct, frozen=True):
    """An entry that is no longer in its store.

    Attributes:
        fact: what it said; its row number is below zero, so it differs from that of every fact.
        until: when it was replaced or removed, milliseconds.
        successor: the name of the fact that replaced it; empty if it was removed.
    """

    fact: Fact
    until: int
    successor: str
