"""Decides which fact replaces which: the newer comes first, the older one gets an end; pure."""

from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.language.mentions import words
from memorybus_providers.ranking.facts import ASSISTANT_KINDS
from memorybus_providers.ranking.ranking import Fact, Scored
from memorybus_providers.truth.claims import ME, Claim, claims, frame, rewords

LONGEST_BEFORE = 200
"""The most characters of `before` that are shown (G10)."""

_LIFT_FACTOR = 1.001
_AGENTS = frozenset({"assistant", "sub-agent"})


class Succession(msgspec.Struct, frozen=True):
    """A fact that replaces another.

    Attributes:
        older: the fact that is no longer true.
        newer: the fact that is true now.
        until: when the older one ceased to be true, milliseconds.
        before: what was true before, in short.
    """

    older: Fact
    newer: Fact
    until: int
    before: str


class Statement(msgspec.Struct, frozen=True):
    """A claim, and the fact that makes it."""

    claim: Claim
    fact: Fact


def statements(facts: Iterable[Fact]) -> list[Statement]:
    """Return what facts claim: what people said, and what was kept.

    What an agent says about others comes from memory, so it cannot make an outdated fact true
    again. If the one who answers has a person's name, what they say about themselves counts.
    """
    return [
        Statement(claim, fact)
        for fact in facts
        if fact.speaker not in _AGENTS
        for claim in _claims_of(fact)
    ]


def rivals(statement: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that contradict a statement, the newest first."""
    given = Fact(0, None, 1.0, "", "", "note", "", 0, statement, "", "")
    made = _with_person_as_me(statements([given, *facts]))
    own = {one.claim.fills: one.claim for one in made if one.fact == given}
    found = {
        one.fact.id: one.fact
        for one in made
        if one.claim.fills in own and not _agree(one.claim, own[one.claim.fills])
    }
    said = frame(statement)
    kept = [fact for fact in facts if fact.place is None]
    found |= {fact.id: fact for fact in kept if rewords(frame(fact.content), said)}
    return sorted(found.values(), key=_order_key, reverse=True)


def succession_by_correction(older: Fact, newer: Fact, at: int) -> Succession:
    """Return the succession of a correction, which replaced the older fact at a time."""
    return Succession(older, newer, at, _short(older.content))


def apply_successions(found: Sequence[Scored], successions: Sequence[Succession]) -> list[Scored]:
    """Return what was found, each newer fact before the one that it replaces, both marked.

    A newer fact that was not found itself is added with the score of the fact that it replaces.
    """
    scored = {one.fact.id: one for one in found}
    for one in successions:
        old = scored.get(one.older.id)
        if old is not None:
            new = scored.get(one.newer.id) or Scored(one.newer, 0.0)
            score = max(new.score, old.score * _LIFT_FACTOR)
            parts = {**new.parts, "newer": score - new.score} if score > new.score else new.parts
            scored[one.newer.id] = msgspec.structs.replace(new, score=score, parts=parts)
    for one in sorted(successions, key=lambda one: _order_key(one.older)):
        for fact, marks in ((one.older, {"until": one.until}), (one.newer, {"before": one.before})):
            if fact.id in scored:
                scored[fact.id] = msgspec.structs.replace(scored[fact.id], **marks)
    return sorted(scored.values(), key=lambda one: -one.score)


def _agree(one: Claim, two: Claim) -> bool:
    """Say whether two claims for a slot agree: one may say the same more precisely."""
    if not (one.value_stems and two.value_stems):
        return one.value_stems == two.value_stems
    return one.value_stems <= two.value_stems or two.value_stems <= one.value_stems


def _claims_of(fact: Fact) -> list[Claim]:
    made = claims(fact.content, kept=fact.place is None)
    if fact.kind not in ASSISTANT_KINDS:
        return made
    name = " ".join(words(fact.speaker))
    return [msgspec.structs.replace(one, subject=name) for one in made if one.subject == ME]


def _with_person_as_me(made: Iterable[Statement]) -> list[Statement]:
    """Return statements in which the person of the scope is `ME`, even if they give the name."""
    made = list(made)
    me = [set(words(one.fact.speaker)) for one in made if one.fact.kind == "user"]
    return [
        Statement(msgspec.structs.replace(one.claim, subject=ME), one.fact)
        if one.claim.subject and any(set(words(one.claim.subject)) <= name for name in me)
        else one
        for one in made
    ]


def _order_key(fact: Fact) -> tuple[int, tuple[int, int], int]:
    return fact.at, fact.place or (-1, -1), fact.id


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_BEFORE else f"{line[: LONGEST_BEFORE - 1]}…"
