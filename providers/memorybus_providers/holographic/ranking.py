"""Re-ranking of the facts a full-text search found; pure.

Words alone miss answers that do not repeat the question's. What a conversation adds: the answer
follows a question, lies near other hits, was said by the person asked about, in the month asked
about. Each is a small general prior, not a model. The weights were chosen on two conversations of
LoCoMo and checked on three others. Halving or doubling any one of them moves the share of evidence
found by less than two hundredths.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import msgspec

from memorybus_providers.holographic import nearness
from memorybus_providers.holographic.query import Question
from memorybus_providers.holographic.words import folded

K1 = 1.2
B = 0.6
"""BM25: saturation of repeated words, and how much length counts."""

NEAR: Final[Mapping[int, float]] = MappingProxyType({-2: 0.1, -1: 0.2, 1: 0.2, 2: 0.1})
"""What an utterance gains from the ones around it, by distance."""

ANSWER = 0.6
"""What an utterance gains from the question it follows."""

SESSION = 0.8
SESSION_BEST = 3
"""What a fact gains from the mean of its session's best ones."""

SPEAKER = 2.0
"""Factor of a fact whose speaker the question names."""

MONTH = 2.0
YEAR = 1.15
"""Factors of a fact said in a month, or a year, that the question names."""

QUESTION = 0.9
"""Factor of an utterance that asks rather than tells."""

KEPT = 2.0
"""Factor of a fact that somebody chose to keep, a memory write or a note: it stands alone, and a
good hit inside a conversation about doubles by what is around it."""

LOOKED_AT = 10_000
"""Characters of a fact whose words are compared (G10)."""

LAST_MS = 253_402_300_799_000  # the end of year 9999, where datetime ends
_ENDING = 400
_QUESTION_MARK = re.compile(r"\?[\s\"'”’)]*(?:\[[^\[\]]*\]\s*)?$")  # a caption may follow


class Fact(msgspec.Struct, frozen=True):
    """A row of the store, as ranking sees it.

    Attributes:
        id: its row.
        place: (session's row, number of the utterance in it), or None outside a conversation.
        trust: 0 to 1; 0.5 if nobody has judged it.
        name: what it is called outside of the store (see `facts`).
        session: the session's name.
        kind: see `facts`.
        speaker: who said it.
        at: milliseconds.
        content: the text.
        category: of a note.
        tags: of a note, parted by spaces.
        event: id of the event that brought it.
    """

    id: int
    place: tuple[int, int] | None
    trust: float
    name: str
    session: str
    kind: str
    speaker: str
    at: int
    content: str
    category: str
    tags: str
    event: str = ""


class Corpus(msgspec.Struct, frozen=True):
    """How many facts there are, and how many hold each stem asked for."""

    size: int
    found: Mapping[str, int]

    def rarity(self, stem: str) -> float:
        """Return the inverse document frequency of a stem; above zero, however common it is."""
        found = self.found.get(stem, 0)
        return math.log(1 + (self.size + 0.5) / (found + 0.5))


class Scored(msgspec.Struct, frozen=True):
    """A fact and how well it answers.

    Attributes:
        fact: the fact.
        score: larger is better.
        parts: what the score is made of, amounts and then factors; those that change nothing are
            left out.
        near: how near its meaning is to the question's, from 0 to 1; None if it was not compared,
            or is not near.
    """

    fact: Fact
    score: float
    parts: Mapping[str, float] = MappingProxyType({})
    near: float | None = None


def ranked(
    question: Question,
    hits: Sequence[Fact],
    around: Sequence[Fact],
    corpus: Corpus,
    names: frozenset[str],
    near: Mapping[int, float] = MappingProxyType({}),
) -> list[Scored]:
    """Return the facts that answer a question, best first.

    Args:
        question: what is asked.
        hits: what the search found.
        around: the utterances around the hits, which are no hits themselves.
        corpus: statistics of the terms.
        names: words of the question that name speakers.
        near: how near the meaning of some hits is to the question's, from 0 to 1, by their rows.
    """
    said = _said(question, hits)
    words = _alone(said, corpus)
    meant = _meant(hits, said, near, corpus) if near else {}
    alone = {fact: amount + meant.get(fact, 0.0) for fact, amount in words.items()}
    facts = (*hits, *around)
    gained = _gained(facts, alone)
    scored = [
        _scored(
            fact,
            {
                "words": words.get(fact.id, 0.0),
                "meaning": meant.get(fact.id, 0.0),
                "conversation": gained[fact.id],
            },
            _factors(question, fact, names),
            near.get(fact.id),
        )
        for fact in facts
    ]
    return sorted((s for s in scored if s.score > 0), key=lambda s: (-s.score, -s.fact.id))


def _scored(
    fact: Fact, amounts: Mapping[str, float], factors: Mapping[str, float], near: float | None
) -> Scored:
    parts = {**{name: amount for name, amount in amounts.items() if amount}, **factors}
    return Scored(fact, sum(amounts.values()) * math.prod(factors.values()), parts, near)


def _said(question: Question, hits: Sequence[Fact]) -> dict[int, list[str]]:
    """Return the words of each hit; where one is a form of a term, the term's stem."""
    texts = question.read(f"{fact.tags} {fact.content[:LOOKED_AT]}" for fact in hits)
    return {fact.id: text for fact, text in zip(hits, texts, strict=True)}


def _meant(
    hits: Sequence[Fact],
    said: Mapping[int, Sequence[str]],
    near: Mapping[int, float],
    corpus: Corpus,
) -> dict[int, float]:
    """Return what the hits gain by their meaning."""
    rarity = {stem: corpus.rarity(stem) for stem in corpus.found}
    held = [rarity.keys() & said[fact.id] for fact in hits]
    return nearness.amounts(near, rarity, held)


def _alone(said: Mapping[int, Sequence[str]], corpus: Corpus) -> dict[int, float]:
    """Score each hit by its own words: BM25, with the mean length of the hits at hand."""
    mean = max(1.0, sum(map(len, said.values())) / max(1, len(said)))
    rarity = {stem: corpus.rarity(stem) for stem in corpus.found}
    return {fact: _bm25(words, rarity, len(words) / mean) for fact, words in said.items()}


def _bm25(said: Sequence[str], rarity: Mapping[str, float], length: float) -> float:
    counts = Counter(word for word in said if word in rarity)
    damping = K1 * (1 - B + B * length)
    return sum(
        rarity[word] * count * (K1 + 1) / (count + damping) for word, count in counts.items()
    )


def _gained(facts: Sequence[Fact], alone: Mapping[int, float]) -> dict[int, float]:
    """Return what each fact gains from the conversation it stands in."""
    at = {fact.place: fact.id for fact in facts if fact.place}
    sessions = _sessions(facts, alone)
    gained = {fact.id: SESSION * sessions[fact.place[0]] if fact.place else 0.0 for fact in facts}
    for fact in facts:
        if fact.place and fact.id in alone:
            for step, weight in _given(fact).items():
                neighbour = at.get((fact.place[0], fact.place[1] + step))
                if neighbour is not None:
                    gained[neighbour] += weight * alone[fact.id]
    return gained


def _given(fact: Fact) -> Mapping[int, float]:
    """Return the weight of what a fact gives to the utterances around it, by distance."""
    return {**NEAR, 1: NEAR[1] + ANSWER} if _asks(fact.content) else NEAR


def _sessions(facts: Sequence[Fact], alone: Mapping[int, float]) -> dict[int, float]:
    """Return the mean of the best hits of each session."""
    scores: defaultdict[int, list[float]] = defaultdict(list)
    for fact in facts:
        if fact.place:
            scores[fact.place[0]].append(alone.get(fact.id, 0.0))
    return {
        session: sum(sorted(values)[-SESSION_BEST:]) / SESSION_BEST
        for session, values in scores.items()
    }


def _factors(question: Question, fact: Fact, names: frozenset[str]) -> dict[str, float]:
    """Return the factors of everything that is not about words: who, when, what kind, trust."""
    factors = {
        "trust": 0.75 + 0.5 * fact.trust,
        "speaker": SPEAKER if names and not names.isdisjoint(folded(fact.speaker).split()) else 1.0,
        "time": _in_time(question, fact.at) if question.months or question.years else 1.0,
        "kept": KEPT if fact.place is None else 1.0,
        "asks": QUESTION if _asks(fact.content) else 1.0,
    }
    return {name: factor for name, factor in factors.items() if factor != 1.0}


def _in_time(question: Question, at: int) -> float:
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC)
    if question.months:
        year_fits = not question.years or said.year in question.years
        return MONTH if said.month in question.months and year_fits else 1.0
    return YEAR if said.year in question.years else 1.0


def _asks(content: str) -> bool:
    return bool(_QUESTION_MARK.search(content[-_ENDING:]))
