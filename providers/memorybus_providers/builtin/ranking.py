"""Which entries answer a query: word overlap, rare words counting more. Pure functions."""

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")

_COMMON_TEXT = """
a about am an and are as at be been but by can could did do does for from had has have he her hers
him his how i if in into is it its me my of on or our s she should so t that the their them then
there these they this to us was we were what when where which who whom whose why will with would
you your
"""
_COMMON = frozenset(_COMMON_TEXT.split())


def words(text: str) -> frozenset[str]:
    """Return a text's distinct words: case folded, no common ones, a plural ``s`` taken off."""
    found = _WORD.findall(text.casefold())
    return frozenset(_stem(word) for word in found if word not in _COMMON)


def rank(entries: Sequence[str], query: str) -> list[tuple[float, int]]:
    """Return (score, index) of the entries that share a word with the query, best first.

    An entry without a shared word is left out: the budget of a memory block is shared by all
    providers. A query of common words only ("what do you have?") asks for everything, newest
    first, with score 0.
    """
    asked = words(query)
    if not asked:
        return [(0.0, i) for i in reversed(range(len(entries)))]
    shared = [words(entry) & asked for entry in entries]
    known_by = Counter(word for found in shared for word in found)
    scored = [
        (sum(math.log1p(len(entries) / known_by[word]) for word in sorted(found)), i)
        for i, found in enumerate(shared)
        if found
    ]
    return sorted(scored, key=lambda pair: (-pair[0], -pair[1]))


def matched_words(entry: str, query: str) -> tuple[str, ...]:
    """Return the words of an entry that a query asked for, as the entry spells them."""
    asked = words(query)
    found = dict.fromkeys(_WORD.findall(entry))
    return tuple(word for word in found if not asked.isdisjoint(words(word)))


def _stem(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word
