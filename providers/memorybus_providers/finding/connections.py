"""Finds what is known of entities: all about one, what goes with it, what connects several."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.entities import Entities, Entity
from memorybus_providers.finding.source import FactSource
from memorybus_providers.language.mentions import mentions, words
from memorybus_providers.ranking.ranking import Fact


class Companion(msgspec.Struct, frozen=True):
    """A name that occurs in the same facts as an entity, with those facts, the newest first."""

    name: str
    facts: tuple[Fact, ...]


class Bridge(msgspec.Struct, frozen=True):
    """A third name through which entities are connected: the newest fact with each of them."""

    name: str
    facts: tuple[Fact, ...]


class Connections:
    """Follows entities from fact to fact."""

    def __init__(self, source: FactSource, entities: Entities) -> None:
        """Read through `source`."""
        self._source = source
        self._entities = entities

    def probe(self, asked: str, scope: RecallScope) -> tuple[Entity, list[Fact]]:
        """Return an entity and all about it.

        Kept facts come first, then what others said of it, then what it said itself.
        """
        entity = self._entities.resolve(asked, scope)
        naming = self._entities.about(entity, scope)
        known = {fact.id for fact in naming}
        said = self._source.facts_said_by(words(entity.name)[-1:], scope) if _speaks(entity) else []
        own = [f for f in said if f.id not in known and _is_part(f.speaker, entity)]
        return entity, sorted(naming, key=lambda fact: fact.place is not None) + own

    def related(self, asked: str, scope: RecallScope) -> tuple[Entity, list[Companion]]:
        """Return an entity and the names that occur together with it, the most frequent first."""
        entity = self._entities.resolve(asked, scope)
        return entity, _companions(entity, self._entities.about(entity, scope))

    def reason(
        self, asked: Sequence[str], scope: RecallScope
    ) -> tuple[list[Entity], list[Fact], list[Bridge]]:
        """Return entities, the facts that name several of them, and names that connect them.

        Facts that name more of them come first, then newer ones.
        """
        entities = [self._entities.resolve(one, scope) for one in asked]
        about = [self._entities.about(entity, scope) for entity in entities]
        facts = {fact.id: fact for found in about for fact in found}
        shared = {
            fact: count
            for fact in facts
            if (count := sum(any(one.id == fact for one in found) for found in about)) > 1
        }
        joint = sorted(
            (facts[fact] for fact in shared), key=lambda one: (-shared[one.id], -one.at, -one.id)
        )
        return entities, joint, _bridges(entities, about)


def _speaks(entity: Entity) -> bool:
    return entity.kind == "person" and bool(words(entity.name))


def _is_part(speaker: str, entity: Entity) -> bool:
    return words(speaker) in entity.folded_aliases or set(words(entity.name)) <= set(words(speaker))


def _companions(entity: Entity, about: Iterable[Fact]) -> list[Companion]:
    own = {word for alias in entity.folded_aliases for word in alias}
    named: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in about:
        for name in _names(fact):
            if own.isdisjoint(words(name)):
                named[name].append(fact)
    companions = [Companion(name, tuple(facts)) for name, facts in named.items()]
    return sorted(companions, key=lambda one: -len(one.facts))


def _names(fact: Fact) -> set[str]:
    """Return the names in a fact; a single word that begins a sentence may not be a name."""
    return {m.name for m in mentions(fact.content) if not m.opens or " " in m.name}


def _bridges(entities: Sequence[Entity], about: Sequence[Sequence[Fact]]) -> list[Bridge]:
    """Return the names that occur with every entity, each time in another fact."""
    sides = [
        {one.name: one.facts for one in _companions(entity, facts)}
        for entity, facts in zip(entities, about, strict=True)
    ]
    asked = {word for entity in entities for alias in entity.folded_aliases for word in alias}
    through = [n for n in sides[0] if all(n in side for side in sides[1:])]
    return [
        Bridge(name, tuple(dict.fromkeys(side[name][0] for side in sides)))
        for name in through
        if asked.isdisjoint(words(name))
    ]
