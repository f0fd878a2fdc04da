"""Puts a fact that changed something before the older fact that it changed; pure.

"Actually make the course 14:00" says less about a question than the statement that it changed, so
words rank it lower. Therefore a fact that reports a change comes before an older one about the same
thing, if it says at least half of what the older one says about the question, and is nearly as
good. The older one follows it, since it may contain what the newer one leaves out. A newer entry of
a memory file comes first in the same way.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from memorybus_providers.language.query import Question
from memorybus_providers.language.words import folded
from memorybus_providers.ranking.ranking import LOOKED_AT, Corpus, Fact, Scored

MAX_COMPARED = 12
"""The most facts of an answer that are compared, the best ones (G10)."""

_MAX_READ_CHARS = 1_000
"""The most characters of a fact in which a change is looked for (G10)."""

LEAST_SHARED = 0.5
LEAST_SCORE = 0.7
"""The newer fact must have these shares of what the older one says, and of its score."""

_CHANGING = r"""
    \b(?:now|new|changed?|changes|moved|switched|replaced|rescheduled|postponed|instead|actually
      |from\s+(?:\w+\s+){1,3}on|no\s+longer|any\s?more|updated?|corrected|correction
      |jetzt|nun|neue[rsmn]?|neu|geandert|verschoben|gewechselt|stattdessen|ab\s+(?:sofort|jetzt)
      |nicht\s+mehr
      |ahora|nuev[oa]|cambiad[oa]|cambio|a\s+partir\s+de|ya\s+no|en\s+vez
      |maintenant|desormais|nouve(?:au|lle)|change[es]?|deplace|a\s+partir\s+d[eu]|plutot)\b
"""
_CHANGES: Final = re.compile(_CHANGING, re.VERBOSE)
_ASKS_FOR_THE_OLD: Final = re.compile(
    r"\b(?:old|previous|previously|former|formerly|before|used\s+to|originally|first|until|history"
    r"|alte[rsnm]?|fruher\w*|vorher\w*|zuerst|antes|anterior|avant|ancien\w*)\b"
)


def newest_first(question: Question, scored: Sequence[Scored], corpus: Corpus) -> list[Scored]:
    """Return what was found, with each change before the fact that it changed.

    Args:
        question: what is asked; if it asks for what was true before, the order stays.
        scored: what was found, best first.
        corpus: statistics of the terms.
    """
    found = list(scored)
    if _ASKS_FOR_THE_OLD.search(" ".join(question.words)):
        return found
    best = found[:MAX_COMPARED]
    said = cache(lambda: _amounts_said(question, best, corpus))
    for one in best:
        place = found.index(one)
        # Cheap tests come first; a text is only read if the result depends on it.
        older = [n for n in range(place) if _may_be_renewed(found[n], one)]
        if older and _tells_a_change(one.fact):
            same = (n for n in older if _says_as_much(one, found[n], said()))
            if (first := next(same, None)) is not None:
                found.insert(first, _raised(found.pop(place), found[first]))
    return found


def _amounts_said(
    question: Question, best: Sequence[Scored], corpus: Corpus
) -> dict[int, dict[str, float]]:
    """Return what each fact says of the question, by the fact's id: stems and their rarities."""
    texts = question.read_texts(one.fact.content[:LOOKED_AT] for one in best)
    return {
        one.fact.id: {stem: corpus.rarity(stem) for stem in words if stem in corpus.found}
        for one, words in zip(best, texts, strict=True)
    }


def _tells_a_change(fact: Fact) -> bool:
    """Say whether a fact says that something changed, or was kept: an entry is kept up to date."""
    return fact.place is None or bool(_CHANGES.search(folded(fact.content[:_MAX_READ_CHARS])))


def _may_be_renewed(older: Scored, newer: Scored) -> bool:
    return older.fact.at < newer.fact.at and newer.score >= LEAST_SCORE * older.score


def _says_as_much(newer: Scored, older: Scored, said: Mapping[int, Mapping[str, float]]) -> bool:
    by_older, by_newer = said.get(older.fact.id, {}), said[newer.fact.id]
    shared = sum(amount for stem, amount in by_older.items() if stem in by_newer)
    return shared > 0 and shared >= LEAST_SHARED * sum(by_older.values())


def _raised(newer: Scored, older: Scored) -> Scored:
    """Return a fact with a score above that of another, and the factor that says so."""
    factor = older.score / newer.score
    parts = {**newer.parts, "newer": factor}
    fit = max(newer.fit, older.fit)
    return msgspec.structs.replace(newer, score=older.score, fit=fit, parts=parts)
