"""What was put right or replaced, as stores keep it beside the facts; pure."""

import msgspec

from memorybus_providers.ranking.ranking import Fact


class Correction(msgspec.Struct, frozen=True):
    """What was put right, and by what.

    Attributes:
        fact: name of the fact that is meant; empty if it is known by its text.
        old: a text that it holds; empty if it is known by its name.
        note: name of the note that holds instead.
        at: when, milliseconds.
    """

    fact: str
    old: str
    note: str
    at: int

    def corrects(self, fact: Fact) -> bool:
        """Say whether a fact is put right by this: it was there before, and is not the note."""
        if fact.name == self.note:
            return False
        if self.fact:
            return fact.name == self.fact
        return fact.at <= self.at and self.old in fact.content


class FormerEntry(msgspec.Struct, frozen=True):
    """An entry that does not stand in its store any more.

    Attributes:
        fact: what it said; its row is below zero, and none of the facts'.
        until: when it was replaced or removed, milliseconds.
        successor: name of what replaced it; empty if it was removed.
    """

    fact: Fact
    until: int
    successor: str
