"""Which fact takes the place of which: the newer comes first, the older one is dated; pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from memorybus_providers.holographic.claims import ME, Claim, claims, rewords
from memorybus_providers.holographic.mentions import words
from memorybus_providers.holographic.ranking import Fact, Scored

LONGEST_BEFORE = 200
"""Characters of what was so before that are shown (G10)."""

_LIFT = 1.001
_AGENTS = frozenset({"assistant", "sub-agent"})


class Succession(msgspec.Struct, frozen=True):
    """One fact that holds in the place of another.

    Attributes:
        older: what does not hold any more.
        newer: what holds now.
        until: when the older one ceased to hold, milliseconds.
        before: what was so before, in short.
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

    What an agent says of others it has from memory: it makes nothing true that is outdated.
    """
    people = [fact for fact in facts if fact.speaker not in _AGENTS and fact.kind != "assistant"]
    me = {words(fact.speaker) for fact in people if fact.kind == "user"} - {("user",), ()}
    return [
        Statement(_of_me(claim, me), fact)
        for fact in people
        for claim in claims(fact.content, kept=fact.place is None)
    ]


def by_claims(facts: Iterable[Fact]) -> list[Succession]:
    """Return who follows whom of the facts that fill one slot of one subject."""
    slots: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for one in sorted(statements(facts), key=lambda one: _order(one.fact)):
        slots[one.claim.fills].append(one)
    return [found for filled in slots.values() for found in _chain(filled)]


def by_wording(facts: Iterable[Fact]) -> list[Succession]:
    """Return who follows whom of kept facts that put another value into the same words."""
    kept = sorted((fact for fact in facts if fact.place is None), key=_order)
    found = []
    for place, older in enumerate(kept):
        newer = [n for n in kept[place + 1 :] if n.trust >= older.trust]
        rivals = [one for one in newer if rewords(older.content, one.content)]
        if rivals:
            found.append(Succession(older, rivals[-1], rivals[0].at, _short(older.content)))
    return found


def rivals(statement: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that say otherwise than a statement, the newest first."""
    given = Fact(0, None, 1.0, "", "", "note", "", 0, statement, "", "")
    made = statements([given, *facts])
    own = {one.claim.fills: one.claim for one in made if one.fact == given}
    found = {
        one.fact.id: one.fact
        for one in made
        if one.claim.fills in own and not _agree(one.claim, own[one.claim.fills])
    }
    found |= {f.id: f for f in facts if f.place is None and rewords(f.content, statement)}
    return sorted(found.values(), key=_order, reverse=True)


def corrected(older: Fact, newer: Fact, at: int) -> Succession:
    """Return what a correction says: the older fact was put right at a time."""
    return Succession(older, newer, at, _short(older.content))


def settled(found: Sequence[Scored], successions: Sequence[Succession]) -> list[Scored]:
    """Return what was found, each newer fact before what it takes the place of, both marked.

    A newer fact that was not found itself comes with the score of what it takes the place of.
    """
    scored = {one.fact.id: one for one in found}
    for one in successions:
        old = scored.get(one.older.id)
        if old is not None:
            new = scored.get(one.newer.id) or Scored(one.newer, 0.0)
            score = max(new.score, old.score * _LIFT)
            parts = {**new.parts, "newer": score - new.score} if score > new.score else new.parts
            scored[one.newer.id] = msgspec.structs.replace(new, score=score, parts=parts)
    for one in sorted(successions, key=lambda one: _order(one.older)):
        for fact, marks in ((one.older, {"until": one.until}), (one.newer, {"before": one.before})):
            if fact.id in scored:
                scored[fact.id] = msgspec.structs.replace(scored[fact.id], **marks)
    return sorted(scored.values(), key=lambda one: -one.score)


def _chain(filled: Sequence[Statement]) -> list[Succession]:
    """Return the successions among statements for one slot, given in the order of time.

    A newer statement that is trusted less takes no place.
    """
    found = []
    for place, one in enumerate(filled):
        trusted = [n for n in filled[place + 1 :] if n.fact.trust >= one.fact.trust]
        later = next((n for n in trusted if not _agree(n.claim, one.claim)), None)
        if later is not None and not _agree(trusted[-1].claim, one.claim):
            before = one.claim.value or _short(one.fact.content)
            found.append(Succession(one.fact, trusted[-1].fact, later.fact.at, before))
    return found


def _agree(one: Claim, two: Claim) -> bool:
    """Say whether two claims for a slot say one thing: one may say it more precisely."""
    if not (one.means and two.means):
        return one.means == two.means
    return one.means <= two.means or two.means <= one.means


def _of_me(claim: Claim, me: set[tuple[str, ...]]) -> Claim:
    """Return a claim about the person of the scope as one about `ME`, whose name it may give."""
    subject = words(claim.subject)
    mine = any(set(subject) <= set(name) for name in me) if subject else False
    return msgspec.structs.replace(claim, subject=ME) if mine else claim


def _order(fact: Fact) -> tuple[int, tuple[int, int], int]:
    return fact.at, fact.place or (-1, -1), fact.id


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_BEFORE else f"{line[: LONGEST_BEFORE - 1]}…"
