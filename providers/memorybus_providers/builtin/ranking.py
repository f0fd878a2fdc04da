"""Ranks the entries that share terms with a query; rare terms count more; pure.

A query is read in the same way as for the stores of facts (`language.query`): without the stop
words of its language, and with the forms of its words.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from memorybus_providers.language.languages import stems_of
from memorybus_providers.language.query import Question, parse_question
from memorybus_providers.language.sentences import split_prompt
from memorybus_providers.language.words import tokens

_WORD = re.compile(r"\w+")


def rank(entries: Sequence[str], query: str) -> list[tuple[float, int]]:
    """Return (score, index) of the entries that share a term with the query, best first.

    An entry without a shared term is left out, since all providers share the budget of a memory
    block. A query of stop words only ("what do you have?") asks for everything: all entries are
    returned with the score 0, the newest first.
    """
    question = parse_question(*split_prompt(query))
    if not question.terms:
        return [(0.0, i) for i in reversed(range(len(entries)))]
    weights = {term.stem: term.weight for term in question.terms}
    shared = [sorted(_matching_terms(entry, question)) for entry in entries]
    known_by = Counter(term for found in shared for term in found)
    scored = [
        (sum(weights[term] * math.log1p(len(entries) / known_by[term]) for term in found), i)
        for i, found in enumerate(shared)
        if found
    ]
    return sorted(scored, key=lambda pair: (-pair[0], -pair[1]))


def matched_words(entry: str, query: str) -> tuple[str, ...]:
    """Return the words of an entry that a query asks for, as the entry spells them."""
    question = parse_question(*split_prompt(query))
    return tuple(filter(question.asks_for, dict.fromkeys(_WORD.findall(entry))))


def _matching_terms(entry: str, question: Question) -> frozenset[str]:
    """Return the stems of the terms of which an entry contains a form.

    Words are compared in the likeliest language of the question and in English: a store of twenty
    entries does not show which of many possible languages is meant.
    """
    languages = tuple(dict.fromkeys((question.languages[0], "english")))
    entry_tokens = frozenset(tokens(entry))
    stems = frozenset[str]().union(*(stems_of(token, languages) for token in entry_tokens))
    return frozenset(
        term.stem
        for term in question.terms
        if not entry_tokens.isdisjoint(term.forms)
        or not stems.isdisjoint(stems_of(term.word, languages))
    )
