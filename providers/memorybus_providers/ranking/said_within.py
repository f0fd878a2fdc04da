"""Orders what was said within a time, if a question asks for nothing else; pure.

The person's own words and kept facts come before the words of others, and statements before mere
questions. Among equal ones the newest of each part of the time come in turn, so that a block that
cannot show all of them shows something of each part.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

import msgspec

from memorybus_providers.language.query import Question
from memorybus_providers.language.time_words import ACTIVITIES
from memorybus_providers.language.times import Period
from memorybus_providers.language.words import folded
from memorybus_providers.ranking.asking import only_asks, tells
from memorybus_providers.ranking.ranking import LOOKED_AT, Fact, Scored

MAX_PARTS = 8
MIN_PARTS = 4  # the most parts of a time; if there are several times, the least parts of each (G10)

_MIN_WORDS = 3  # an utterance of at least this many words says something

_T = TypeVar("_T")


def parts_of_time(periods: Sequence[Period]) -> list[Period]:
    """Return the parts of periods, the latest first."""
    each = max(MIN_PARTS, MAX_PARTS // max(1, len(periods)))
    parts = []
    for period in sorted(periods, reverse=True):
        bounds = [period.start + (period.end - period.start) * n // each for n in range(each + 1)]
        parts += [Period(*bounds[n : n + 2]) for n in reversed(range(each))]
    return parts


def in_turn(parts: Iterable[Sequence[_T]]) -> Iterator[_T]:
    """Yield the first of each part, then the second of each, and so on."""
    none = object()
    turns = zip_longest(*parts, fillvalue=none)
    return (one for one in chain.from_iterable(turns) if one is not none)  # type: ignore[misc]


def order_by_time(
    facts: Sequence[Fact],
    parts: Sequence[Period],
    names: Collection[str],
    question: Question,
) -> list[Scored]:
    """Return facts that were said within a time, best first.

    Args:
        parts: the parts of the time.
        names: folded words that name the speakers who are asked for; empty for no one in
            particular.
        question: what is asked; facts that name its activity come first.
    """
    activities = tuple(term for term in question.terms if term.word in ACTIVITIES)
    asked = msgspec.structs.replace(question, terms=activities)
    told = (fact for fact in facts if tells(fact.content, fact.kind, answered=False))
    newest = sorted(told, key=lambda fact: (-fact.at, -fact.id))
    groups: dict[tuple[bool, ...], list[list[Fact]]] = {}
    for fact in newest:
        part = next((n for n, period in enumerate(parts) if period.holds(fact.at)), None)
        if part is not None:
            says_it = bool(activities) and asked.asks_for(fact.content[:LOOKED_AT])
            order = (not says_it, *_order(fact, names))
            groups.setdefault(order, [[] for _ in parts])[part].append(fact)
    best = [fact for group in sorted(groups) for fact in in_turn(groups[group])]
    worth = [1 - place / (2 * len(best)) for place in range(len(best))]
    return [Scored(fact, one, {"time": one}) for fact, one in zip(best, worth, strict=True)]


def _order(fact: Fact, names: Collection[str]) -> tuple[bool, bool, bool]:
    """Return what puts a fact behind others: another speaker, no person, or no statement."""
    asked = not set(names).isdisjoint(folded(fact.speaker).split()) if names else True
    own = fact.place is None or fact.kind == "user"
    tells = len(fact.content.split()) >= _MIN_WORDS and not only_asks(fact.content)
    return (not asked, not own and not names, not tells)
