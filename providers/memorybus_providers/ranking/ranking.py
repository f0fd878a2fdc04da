"""Ranks the facts that a full-text search found; pure.

The weight of a fact (see `evidence`) is multiplied by factors for what words do not say: whether it
was said by the person asked about, in the month asked about, how recent it is, and whether a better
piece of its message was found. Each factor is a small general prior, not a model; what each brings
is in docs/decisions/ranking.md.
"""

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from memorybus_providers.language.languages import is_stop_word
from memorybus_providers.language.query import Question
from memorybus_providers.language.times import DAY_MS, Period
from memorybus_providers.language.words import folded
from memorybus_providers.ranking import evidence
from memorybus_providers.ranking.asking import asks, only_asks, tells
from memorybus_providers.ranking.evidence import WeighedFact, Weight
from memorybus_providers.ranking.nearness import Near, meaning_amounts

SPEAKER_FACTOR = 1.6  # factor of a fact whose speaker the question names

DAY_FACTOR = 3.4
MONTH_FACTOR = 2.6
YEAR_FACTOR = 1.8
"""Factors of a fact said on a day that the question names with its month, in a month, or in a year,
or in a shorter or longer period: "last week", "last year"."""

RECENCY_GAIN = 0.03
"""What the newest of the facts found gains over the oldest, as a share of its score."""

AGAIN_FACTOR = 0.6  # factor of each further piece of one message

KEPT_FACTOR = 2.0
"""Factor of a fact that somebody chose to keep, a memory write or a note: it stands alone, and a
good hit inside a conversation about doubles by what is around it."""

LENGTH_POWER = 0.2
"""The power of a line's length by which a fact loses: the shorter of two leaves more room."""

LEAST_FIT = 0.45  # the least `Scored.fit` of a fact with which there is an answer

LINE_CHARS = 26
USUAL_LINE_CHARS = 170  # characters of a line beside its text, and of a usual line with it

SHORT_CHARS = 100  # texts of at most this many characters count as equally long

MAX_RARE_TERMS = 5
FEW_FACTS = 100
"""How many terms of a long question count as what is asked for, and how many facts are few."""

USE_GAIN = 0.01
MAX_USES = 5
"""What a fact gains each time that a tool listed it, as a factor, and how often: it decides between
facts that are otherwise equal, and no more, since a rebuild forgets it."""

LOOKED_AT = 10_000  # the most characters of a fact that are compared (G10)

MAX_EXAMINED = 100  # the most facts that are examined closely, the likeliest ones (G10)

_WORDS = "words"

_LONG_MS = 100 * DAY_MS  # longer than a season: the year that a question names

LAST_MS = 253_402_300_799_000  # the end of year 9999, where datetime ends


# A recall makes hundreds of these and of `evidence.Weight`. Objects that the garbage collector
# follows would make it search the whole heap once in a hundred recalls, for 30 ms.
class Fact(msgspec.Struct, frozen=True, gc=False):
    """A row of the store, as ranking sees it.

    Attributes:
        place: (session's row, number of the utterance in it), or None outside a conversation.
    """

    id: int  # its row
    place: tuple[int, int] | None
    trust: float  # 0 to 1; 0.5 if nobody has judged it
    name: str  # its name outside of the store (see `facts`)
    session: str  # the session's name
    kind: str  # see `facts`
    speaker: str  # who said it
    at: int  # milliseconds
    content: str  # the text
    category: str  # the category of a note
    tags: str  # the tags of a note, separated by spaces
    event: str = ""  # the id of the event that brought it
    retrieved: int = 0  # how often a tool listed it. A rebuild begins to count anew
    used: int = 0  # when it was last recalled, to the day, milliseconds; 0 if never since a rebuild
    archived: bool = False  # whether the curator took it out of prompts

    @property
    def message(self) -> tuple[str, str, str]:
        """What the pieces of one message have in common."""
        return self.event, self.kind, self.speaker


class Corpus(msgspec.Struct, frozen=True):
    """How many facts there are, and how many contain each stem asked for.

    Attributes:
        weights: how much those stems count that count less than 1.
    """

    size: int  # the number of facts
    found: Mapping[str, int]  # for each stem that is asked for, how many of them hold it
    names: frozenset[str] = frozenset()  # those of the stems that the question writes as names
    weights: Mapping[str, float] = MappingProxyType({})

    def rarity(self, stem: str) -> float:
        """Return how much a stem counts: its inverse document frequency, as far as it is asked for.

        It is above zero, however common the stem is.
        """
        found = self.found.get(stem, 0)
        return self.weights.get(stem, 1.0) * math.log(1 + (self.size + 0.5) / (found + 0.5))

    def beside(self, other: "Corpus") -> "Corpus":
        """Return the corpus in which stems that only `other` knows are as rare as there."""
        known = {stem: count for stem, count in self.found.items() if count}
        return msgspec.structs.replace(self, found={**self.found, **other.found, **known})

    @property
    def rarity_of_question(self) -> float:
        """The rarity of all terms asked for; only of the `MAX_RARE_TERMS` ones if there are more.

        If there are few facts, it says little that no fact contains a word, so such a word counts
        less.
        """
        if self.names and all(self.found.get(stem) for stem in self.names):
            return max(map(self.rarity, self.names))
        asked = sorted(map(self._rarity_asked, self.found), reverse=True)
        return sum(asked[:MAX_RARE_TERMS])

    def _rarity_asked(self, stem: str) -> float:
        if self.found[stem]:
            return self.rarity(stem)
        missing = self.size / (self.size + FEW_FACTS)
        return self.rarity(stem) * missing


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A fact and how well it answers.

    Attributes:
        parts: what the score is made of, amounts and then factors; those that change nothing are
            left out.
        near: how near its meaning is to the question's, from 0 to 1; None if it was not compared.
        fit: how much of what is asked for it covers, by its words or by its meaning: about 1 for a
            fact that says all of it; see `LEAST_FIT`.
    """

    fact: Fact  # the fact
    score: float  # larger is better
    parts: Mapping[str, float] = MappingProxyType({})
    near: float | None = None
    until: int = 0  # when another fact replaced it, milliseconds; 0 if it is still true
    before: str = ""  # what was true before it; empty if it replaced nothing
    fit: float = 1.0
    terms: Collection[str] = ()  # the stems of the question that it has itself


def is_answer(scored: Iterable[Scored]) -> bool:
    """Return whether one of these facts covers enough of what is asked for."""
    return any(one.fit >= LEAST_FIT for one in scored)


def rank_facts(
    question: Question,
    hits: Sequence[Fact],
    around: Sequence[Fact],
    corpus: Corpus,
    names: frozenset[str],
    near: Mapping[int, Near] = MappingProxyType({}),
    answered: Collection[int] = (),
) -> list[Scored]:
    """Return the facts that answer a question, best first.

    Args:
        hits: what the search found.
        around: the utterances around the hits that are not hits themselves.
        corpus: statistics of the terms.
        names: words of the question that name speakers.
        near: how near the meaning of some facts is to the question's, by their rows.
        answered: the rows of those after which something was said.
    """
    facts = (*hits, *around)
    beside = {fact.id for fact in around}
    asked = corpus.rarity_of_question or 1.0
    weights = _weights(question, hits, around, corpus, meaning_amounts(near, asked))
    speakers = {
        speaker
        for speaker in {fact.speaker for fact in facts}
        if not names.isdisjoint(folded(speaker).split())
    }
    stated = [
        _candidate(fact, weights[fact.id], _circumstance_factors(question, fact, speakers))
        for fact in facts
        if fact.id in weights and _answers(weights[fact.id], near.get(fact.id))
        if tells(fact.content, fact.kind, answered=fact.id in beside or fact.id in answered)
    ]
    likely = heapq.nlargest(MAX_EXAMINED, stated, key=lambda one: (one.score, one.fact.id))
    known = any(corpus.found.values())
    scored = [
        _score(one, near.get(one.fact.id), asked, known=known)
        for one in likely
        if not _only_repeats(question, one.fact.content)
    ]
    told = sorted(_newer_counts_more(scored), key=_best_first)
    return sorted(_each_message_once(told), key=_best_first)


def _answers(weight: Weight, near: Near | None) -> bool:
    """Return whether a fact speaks of what is asked: by a word, or because it is rather near."""
    return weight.total > weight.meaning or (near is not None and near.is_enough)


def _only_repeats(question: Question, text: str) -> bool:
    """Return whether a text asks, too, and for nothing else."""
    if not only_asks(text):
        return False
    (words,) = question.read_texts([text])
    telling = {word for word in words if not is_stop_word(word)}
    return bool(telling) and telling <= {term.stem for term in question.terms}


def _newer_counts_more(scored: Sequence[Scored]) -> list[Scored]:
    """Let the newer of two nearly equal facts come first: by `RECENCY_GAIN` at most."""
    oldest = min((one.fact.at for one in scored), default=0)
    span = max((one.fact.at for one in scored), default=0) - oldest
    if not span:
        return list(scored)
    return [
        msgspec.structs.replace(one, score=one.score * factor, parts={**one.parts, "newer": factor})
        if (factor := 1 + RECENCY_GAIN * (one.fact.at - oldest) / span) != 1.0
        else one
        for one in scored
    ]


def _best_first(one: Scored) -> tuple[float, int]:
    return -one.score, -one.fact.id


def _each_message_once(scored: Iterable[Scored]) -> Iterator[Scored]:
    """Let each further piece of a message count by `AGAIN_FACTOR` less than the piece before."""
    given: Counter[tuple[str, str, str]] = Counter()
    for one in scored:
        factor = AGAIN_FACTOR ** given[one.fact.message] if one.fact.place else 1.0
        given[one.fact.message] += 1
        if factor == 1.0:
            yield one
        else:
            parts = {**one.parts, "again": factor}
            yield msgspec.structs.replace(one, score=one.score * factor, parts=parts)


class _Candidate(NamedTuple):
    """A fact with all that is known of it before it is examined closely."""

    fact: Fact
    weight: Weight
    factors: Mapping[str, float]
    score: float


def _candidate(fact: Fact, weight: Weight, factors: Mapping[str, float]) -> _Candidate:
    return _Candidate(fact, weight, factors, weight.total * math.prod(factors.values()))


def _weights(
    question: Question,
    hits: Sequence[Fact],
    around: Sequence[Fact],
    corpus: Corpus,
    meant: Mapping[int, float],
) -> dict[int, Weight]:
    """Return the weight of each fact by words, meaning and place."""
    rarity = {stem: corpus.rarity(stem) for stem in corpus.found}
    texts = list(question.read_texts(_text(fact) for fact in hits))
    places = [
        WeighedFact(fact.id, fact.place, fact.message, words, asks(fact.content))
        for fact, words in zip(hits, texts, strict=True)
    ]
    places += [WeighedFact(fact.id, fact.place, fact.message) for fact in around]
    return evidence.weights(places, rarity, meant)


def _text(fact: Fact) -> str:
    text = fact.content[:LOOKED_AT]
    return f"{fact.tags} {text}" if fact.tags else text


def _score(candidate: _Candidate, near: Near | None, asked: float, *, known: bool) -> Scored:
    amounts = {
        _WORDS: candidate.weight.words,
        "meaning": candidate.weight.meaning,
        "conversation": candidate.weight.around,
    }
    parts = {**{name: amount for name, amount in amounts.items() if amount}, **candidate.factors}
    fit = (
        (candidate.weight.total - candidate.weight.meaning)
        / candidate.weight.total
        * candidate.score
        / asked
    )
    terms = candidate.weight.terms
    if near is None:
        return Scored(candidate.fact, candidate.score, parts, fit=fit, terms=terms)
    fit = max(fit, LEAST_FIT * near.fit(known=known))
    return Scored(candidate.fact, candidate.score, parts, near.nearness, fit=fit, terms=terms)


def _circumstance_factors(
    question: Question, fact: Fact, speakers: Collection[str]
) -> dict[str, float]:
    """Return the factors for what words do not say: who said it and when, and how long it is."""
    factors: dict[str, float] = {}
    if (trust := 0.75 + 0.5 * fact.trust) != 1.0:
        factors["trust"] = trust
    if fact.retrieved:
        factors["used"] = 1 + USE_GAIN * min(fact.retrieved, MAX_USES)
    if fact.speaker in speakers:
        factors["speaker"] = SPEAKER_FACTOR
    if _names_a_time(question) and (time := _time_factor(question, fact.at)) != 1.0:
        factors["time"] = time
    if fact.place is None:
        factors["kept"] = KEPT_FACTOR
    factors["length"] = (USUAL_LINE_CHARS / _line_chars(fact)) ** LENGTH_POWER
    return factors


def _line_chars(fact: Fact) -> int:
    """Return how much room a fact takes; among short ones the difference is not worth a word."""
    return LINE_CHARS + max(SHORT_CHARS, len(fact.content))


def _names_a_time(question: Question) -> bool:
    return bool(question.months or question.years or question.periods)


def _time_factor(question: Question, at: int) -> float:
    held_by = [period for period in question.periods if period.holds(at)]
    if not (question.months or question.years):
        return max(map(_period_factor, held_by), default=1.0)
    if any(period.is_a_day for period in held_by):
        return DAY_FACTOR
    return _calendar_factor(question, at)


def _period_factor(period: Period) -> float:
    return YEAR_FACTOR if period.end - period.start > _LONG_MS else MONTH_FACTOR


def _calendar_factor(question: Question, at: int) -> float:
    said = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, question.zone)
    if question.months:
        year_fits = not question.years or said.year in question.years
        return MONTH_FACTOR if said.month in question.months and year_fits else 1.0
    return YEAR_FACTOR if said.year in question.years else 1.0
