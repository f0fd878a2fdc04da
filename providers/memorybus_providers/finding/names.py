"""Finds what facts say of a name, and which names stand together; names count as they are written.

Nothing is stored and nothing is guessed: a name is looked up in the index of the scope's words.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import FactSource
from memorybus_providers.language.words import folded_words
from memorybus_providers.ranking.facts import names_in
from memorybus_providers.ranking.ranking import Fact


class NamedFacts(msgspec.Struct, frozen=True):
    """A name and facts that contain it, the newest first."""

    name: str
    facts: tuple[Fact, ...]


def facts_naming(name: str, source: FactSource, scope: RecallScope) -> list[Fact]:
    """Return the facts that contain a name: those that were kept, then the newest."""
    asked = folded_words(name)
    facts = source.facts_holding([asked], scope)
    naming = [fact for fact in facts if f" {' '.join(asked)} " in _spaced(fact.content)]
    return sorted(naming, key=lambda fact: fact.place is not None)


def names_beside(name: str, facts: Sequence[Fact]) -> list[NamedFacts]:
    """Return the other names in facts that contain a name, the most frequent first."""
    own = set(folded_words(name))
    named: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: (-fact.at, -fact.id)):
        for other in names_in(fact.content):
            if own.isdisjoint(folded_words(other)):
                named[other].append(fact)
    beside = [NamedFacts(other, tuple(facts)) for other, facts in named.items()]
    return sorted(beside, key=lambda other: -len(other.facts))


def connections(
    names: Sequence[str], source: FactSource, scope: RecallScope
) -> tuple[list[Fact], list[NamedFacts]]:
    """Return the facts that contain several names, and further names that stand with each of them.

    Facts with more of the names come first, then newer ones. A further name has the newest fact
    with each of the names.
    """
    naming = [facts_naming(name, source, scope) for name in names]
    facts = {fact.id: fact for some in naming for fact in some}
    holders = [{fact.id for fact in some} for some in naming]
    count = {fact: sum(fact in some for some in holders) for fact in facts}
    joint = [facts[fact] for fact in facts if count[fact] > 1]
    joint.sort(key=lambda fact: (-count[fact.id], -fact.at, -fact.id))
    sides = [
        {other.name: other.facts[0] for other in names_beside(name, some)}
        for name, some in zip(names, naming, strict=True)
    ]
    asked = {word for name in names for word in folded_words(name)}
    through = [
        NamedFacts(name, tuple(dict.fromkeys(side[name] for side in sides)))
        for name in sides[0]
        if all(name in side for side in sides) and asked.isdisjoint(folded_words(name))
    ]
    return joint, through


def _spaced(text: str) -> str:
    return f" {' '.join(folded_words(text))} "
