"""Weighs how well a fact answers by its words and those of the texts around it; pure.

An answer need not repeat the words of its question. They may stand in the question that it follows,
or in what was said just before or after, if that is short. So each term is looked for
in all these places, and each place has a weight. The amounts of one term from several places are
added as squares, like the sides of a rectangle that give its diagonal: two places count more than
one, but not twice as much. Otherwise a conversation that repeats one word would outweigh a fact
that contains all of them.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

K1 = 1.2
B = 0.6  # BM25: saturation of repeated words, and how much length counts

NEAR_WEIGHTS: Final[Mapping[int, float]] = MappingProxyType({-2: 0.5, -1: 0.4, 1: 0.4, 2: 0.4})
"""Weights of the utterances around a fact, by where they stand; the one before the last is most
often by the same speaker."""

ANSWER_WEIGHT = 0.95
"""Weight of the question that a fact follows: its words are nearly the answer's own."""

Amounts: TypeAlias = Mapping[str, float]  # how much a text says of each term

MessageKey: TypeAlias = tuple[str, str, str]  # names a message: its event, kind and speaker

_NOTHING: Amounts = MappingProxyType({})


class WeighedFact(msgspec.Struct, frozen=True, gc=False):
    """What weighing needs to know of a fact.

    Attributes:
        place: (session's row, number of the utterance in it), or None outside a conversation.
        message: what the pieces of one message share (see `ranking.Fact.message`).
    """

    id: int  # its row
    place: tuple[int, int] | None
    message: MessageKey = ("", "", "")
    words: Sequence[str] = ()  # the stems of its words, in order; none if it holds no term
    asks: bool = False  # whether it asks rather than tells; unused if `words` is empty


class Weight(msgspec.Struct, frozen=True, gc=False):
    """How well a fact answers, as parts and as a total."""

    words: float  # the part of its own words
    meaning: float  # the part of its meaning
    around: float  # the part of the texts around it
    total: float  # all parts together
    terms: Collection[str] = ()  # the terms that it has itself


def weights(
    places: Sequence[WeighedFact], rarity: Mapping[str, float], meant: Mapping[int, float]
) -> dict[int, Weight]:
    """Return the weight of each fact; facts without any weight are left out.

    Args:
        rarity: how much each term asked for counts, by its stem; rare terms count more.
        meant: how much facts gain by their own meaning, by their rows.
    """
    said = _own_amounts(places, rarity)
    together = {fact: _combine(sources) for fact, sources in _sources_by_fact(places, said).items()}
    return {
        fact: _weight(said.get(fact, _NOTHING), meant.get(fact, 0.0), together.get(fact, 0.0))
        for fact in (place.id for place in places)
        if fact in together or fact in meant
    }


def _own_amounts(places: Sequence[WeighedFact], rarity: Mapping[str, float]) -> dict[int, Amounts]:
    """Return what each fact says itself, if anything: BM25, term by term."""
    counts = {
        place.id: Counter(filter(rarity.__contains__, place.words))
        for place in places
        if place.words
    }
    lengths = {place.id: len(place.words) for place in places}
    mean = max(1.0, sum(lengths[fact] for fact in counts) / max(1, len(counts)))
    return {
        fact: {
            term: rarity[term] * count * (K1 + 1) / (count + _damping(lengths[fact] / mean))
            for term, count in found.items()
        }
        for fact, found in counts.items()
    }


def _damping(length: float) -> float:
    return K1 * (1 - B + B * length)


def _cut_messages(places: Iterable[WeighedFact]) -> frozenset[MessageKey]:
    """Return the messages of which there are several pieces: they are long, and no talk."""
    pieces = Counter(place.message for place in places)
    return frozenset(message for message, count in pieces.items() if count > 1)


def _sources_by_fact(
    places: Sequence[WeighedFact], said: Mapping[int, Amounts]
) -> dict[int, list[tuple[float, Amounts]]]:
    """Return for each fact the amounts that count for it, its own first, each with its weight.

    A fact that says something gives it to the facts around, since few facts say anything.
    """
    at = {place.place: place for place in places if place.place}
    cut = _cut_messages(at.values())
    telling = [place for place in places if said.get(place.id)]
    found = {place.id: [(1.0, said[place.id])] for place in telling}
    for step, weight in NEAR_WEIGHTS.items():
        for near in telling:
            place = _place_before(near, step, at, cut)
            if place is not None:
                gives = ANSWER_WEIGHT if step == -1 and near.asks else weight
                found.setdefault(place.id, []).append((gives, said[near.id]))
    return found


def _place_before(
    near: WeighedFact,
    step: int,
    at: Mapping[tuple[int, int], WeighedFact],
    cut: frozenset[MessageKey],
) -> WeighedFact | None:
    """Return the fact that has `near` so many steps after it, if talk alone stands between."""
    if near.place is None:
        return None
    session, number = near.place
    place = at.get((session, number - step))
    between = at.get((session, number - step // 2)) if abs(step) > 1 else near
    if place is None or between is None:
        return None
    return place if cut.isdisjoint((place.message, between.message, near.message)) else None


def _weight(amounts: Amounts, meaning: float, spoken: float) -> Weight:
    own = sum(amounts.values())
    return Weight(own, meaning, spoken - own, spoken + meaning, tuple(amounts))


def _combine(sources: Sequence[tuple[float, Amounts]]) -> float:
    """Return the sum over all terms of the root of the sum of their squares."""
    if len(sources) == 1:
        ((weight, amounts),) = sources
        return weight * sum(amounts.values())
    squares: dict[str, float] = {}
    for weight, amounts in sources:
        for term, amount in amounts.items():
            squares[term] = squares.get(term, 0.0) + (weight * amount) ** 2
    return sum(map(math.sqrt, squares.values()))
