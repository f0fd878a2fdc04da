"""Finds out who or what a name stands for within a scope: its kind, and its other names.

Nothing is stored: an entity is read from the facts of the scope whenever it is needed. So a fact
that was taken back no longer counts, and the order of events makes no difference (G8).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from memorybus_providers.base import RecallScope
from memorybus_providers.finding.source import MAX_FACTS, FactSource
from memorybus_providers.language.english import BASE_FORM, FORMS
from memorybus_providers.language.mentions import (
    RoleStatement,
    mentions,
    names_any,
    parse_role,
    role_statements,
    roles_in,
    without_title,
    words,
)
from memorybus_providers.language.words import folded
from memorybus_providers.ranking.facts import ASSISTANT_KINDS
from memorybus_providers.ranking.ranking import Fact

MAX_ROLES = 4
"""The most roles of a question that are looked up (G10)."""

MAX_FACTS_PER_ROLE = 20
"""The most facts that are read for each of them, the newest (G10)."""

EntityKind = Literal["person", "organisation", "place", "other"]

_ORGANISATIONS: Final = re.compile(
    r"\b(?:inc|ltd|llc|corp|gmbh|ag|plc|sarl|company|university|institute|school|hospital|bank|"
    r"association|foundation|agency|college|clinic|club)\b"
)
_PLACE_WORDS = frozenset({"in", "near"})
_ASSISTANTS = ASSISTANT_KINDS | {"delegation"}
_PEOPLE = """
    mother father mom mum dad parent sister brother sibling son daughter child kid baby wife husband
    partner spouse girlfriend boyfriend fiance fiancee aunt uncle cousin niece nephew grandmother
    grandfather grandma grandpa friend boss colleague neighbour neighbor landlord landlady doctor
    dentist teacher manager roommate flatmate coach lawyer therapist nurse
"""
_PERSONS = frozenset(_PEOPLE.split())
"""Roles that only a person can have."""


class Entity(msgspec.Struct, frozen=True):
    """Somebody or something that facts speak of.

    Attributes:
        name: the longest name that is known.
        kind: what it is, as far as the texts tell; a role that no person can have ("dog") is a
            kind.
        aliases: all its names, including `name`.
        roles: who it is to whom: "my sister", "tom's boss".
    """

    name: str
    kind: EntityKind | str
    aliases: tuple[str, ...]
    roles: tuple[str, ...] = ()

    @property
    def folded_aliases(self) -> tuple[tuple[str, ...], ...]:
        """The aliases as folded words."""
        return tuple(words(alias) for alias in self.aliases)


class Entities:
    """Finds out what a name stands for."""

    def __init__(self, source: FactSource) -> None:
        """Read through `source`."""
        self._source = source

    def resolve(self, asked: str, scope: RecallScope) -> Entity:
        """Return the entity that is meant by a name, a part of a name, a title with a name, or a
        role.

        A name of which nothing is known stands for itself.
        """
        role = parse_role(asked)
        name = self.holder_of_role(role, scope) if role else None
        name = without_title(name or asked.strip())
        aliases = self._aliases(name, scope)
        spoken = [words(alias) for alias in aliases]
        texts = self._source.facts_holding(spoken, scope)
        naming = [fact for fact in texts if names_any(fact.content, spoken)]
        roles = [
            one for fact in naming for one in _role_statements_in(fact) if words(one.name) in spoken
        ]
        speaks = bool(self._source.facts_said_by(words(name), scope)) if name else False
        shown = dict.fromkeys(_role_text(one) for one in roles if not one.weak)
        longest = max(aliases, key=len)
        return Entity(longest, _kind_of(naming, spoken, roles, speaks), aliases, tuple(shown))

    def about(self, entity: Entity, scope: RecallScope) -> list[Fact]:
        """Return the facts that name an entity, the newest first."""
        found = self._source.facts_holding(entity.folded_aliases, scope)
        return [fact for fact in found if names_any(fact.content, entity.folded_aliases)]

    def add_names(self, question: str, scope: RecallScope) -> str:
        """Return a question, followed by the names of the people whose roles it mentions.

        "When is my sister's birthday?" is also a question about Ana, if somebody said that she is.
        """
        said = roles_in(question)[:MAX_ROLES]
        known = [
            name for role in said if (name := self.holder_of_role(role, scope, MAX_FACTS_PER_ROLE))
        ]
        return " ".join(dict.fromkeys((question, *known)))

    def holder_of_role(
        self, role: tuple[str, str], scope: RecallScope, most: int = MAX_FACTS
    ) -> str | None:
        """Return who has a role (see `mentions.parse_role`), according to the newest statement.

        Args:
            role: the owner of the role and the role: (tom, boss).
            scope: whose facts.
            most: the most facts that are read, the newest.
        """
        owner, what = role
        found = [
            one
            for fact in self._source.facts_holding(_called(what), scope, most=most)
            for one in _role_statements_in(fact)
            if _is_role(one.role, what) and _is_owner(one, owner, fact)
        ]
        return next((one.name for one in sorted(found, key=lambda one: one.weak)), None)

    def _aliases(self, name: str, scope: RecallScope) -> tuple[str, ...]:
        """Return the full names that contain a part, and the parts that only one name contains."""
        parts = words(name)
        full = self._full_names(parts, scope)
        meant = [one for one in full if set(parts) <= set(words(one))]
        if len({words(one) for one in meant}) != 1:
            return tuple(dict.fromkeys((name, *meant)))
        (longest, *_) = meant
        others = [one for one in self._full_names(words(longest), scope) if one not in meant]
        shared = {word for one in others for word in words(one)}
        alone = [part for part in longest.split() if words(part) and words(part)[0] not in shared]
        return tuple(dict.fromkeys((longest, name, *alone)))

    def _full_names(self, parts: Sequence[str], scope: RecallScope) -> list[str]:
        """Return the names of several words that share one with `parts`, most often named first."""
        asked = frozenset(parts)
        counts = Counter(
            mention.name
            for fact in self._source.facts_holding(([part] for part in parts), scope)
            for mention in mentions(fact.content)
            if not mention.opens or words(mention.name)[0] in asked
            if len(words(mention.name)) > 1 and asked & set(words(mention.name))
        )
        return [name for name, _ in counts.most_common()]


def _role_statements_in(fact: Fact) -> list[RoleStatement]:
    return role_statements(fact.content)


def _called(role: str) -> list[list[str]]:
    """Return the words for a role, in any language in which it may have been stated."""
    last = role.rsplit(maxsplit=1)[-1]
    return [[form] for form in FORMS.get(BASE_FORM.get(last, last), (last,))]


def _is_role(told: str, asked: str) -> bool:
    """Say whether a role that was stated ends with the one that is asked for."""
    said, wanted = _base_forms(told), _base_forms(asked)
    return said[-len(wanted) :] == wanted


def _base_forms(role: str) -> list[str]:
    return [BASE_FORM.get(word, word) for word in role.split()]


def _is_owner(one: RoleStatement, owner: str, fact: Fact) -> bool:
    """Say whether a stated role is a role of `owner`; "" is the person of the scope."""
    by_assistant = fact.kind in _ASSISTANTS
    if owner:
        said_by_them = one.owner == "" and not set(words(owner)).isdisjoint(words(fact.speaker))
        return said_by_them or set(words(owner)) <= set(words(one.owner))
    return one.owner == ("you" if by_assistant else "")


def _role_text(one: RoleStatement) -> str:
    owner = {"": "my", "you": "your"}.get(one.owner, f"{one.owner}'s")
    return f"{owner} {one.role}"


def _kind_of(
    naming: Iterable[Fact],
    spoken: Sequence[Sequence[str]],
    roles: Iterable[RoleStatement],
    speaks: bool,
) -> str:
    """Return what an entity is: a statement counts more than what its context suggests."""
    for one in roles:
        last = folded(one.role).split()[-1]
        if not one.weak:
            return "person" if last in _PERSONS else last
    if speaks:
        return "person"
    seen = [m for fact in naming for m in mentions(fact.content) if words(m.name) in set(spoken)]
    if any(mention.titled for mention in seen):
        return "person"
    if any(_ORGANISATIONS.search(folded(mention.name)) for mention in seen):
        return "organisation"
    return "place" if any(mention.before in _PLACE_WORDS for mention in seen) else "other"
