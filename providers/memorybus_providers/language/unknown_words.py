"""Finds what an unknown word may have meant: it may be mistyped, or of the same family; pure.

A word that nobody in a scope ever wrote may be mistyped, or related to another in a way that stems
do not show: "allergic" and "allergies". It is compared with the words that begin with the same
letter, and with those that it becomes without its first letter, or with its first two letters
exchanged.
"""

from typing import Final

from memorybus_providers.language.query import Term
from memorybus_providers.language.words import script_of, split_token

MAX_UNKNOWN = 3  # the most unknown words of a question that are compared (G10)

LAST_CHARACTER: Final = "\U0010ffff"
"""A character that sorts after all others, for the end of a range of words."""

_MIN_LETTERS = 5
"""The fewest letters of a word that is compared: shorter ones are near too many others."""

_MIN_SHARED_RATIO = 0.6
"""The common beginning of words of a family has at least this share of the longer word."""

TokenSpan = tuple[str, str]  # a range of tokens: from the first text to just before the second


def may_mean_another(term: Term) -> bool:
    """Return whether a term is a word of letters with spaces around it, and long enough."""
    word = split_token(term.forms[0])[0]
    return len(word) >= _MIN_LETTERS and word.isalpha() and script_of(word) == "spaced"


def spans_near(token: str) -> list[TokenSpan]:
    """Return the ranges of tokens that may be near a token's word."""
    word = split_token(token)[0]
    alone = (word[1:], word[1] + word[0] + word[2:])
    return [(word[0], word[0] + LAST_CHARACTER), *((other, other + '"') for other in alone)]


def is_near(token: str, other: str) -> bool:
    """Return whether a token's word may have meant another.

    >>> is_near("heorn", "heron"), is_near("heron", "hero"), is_near("heron", "baron")
    (True, True, False)
    >>> is_near("allergic", "allergies"), is_near("conference", "confession")
    (True, False)
    """
    word = split_token(token)[0]
    differ = (n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b)
    begin = next(differ, min(len(word), len(other)))
    kindred = begin >= _MIN_LETTERS and begin >= _MIN_SHARED_RATIO * max(len(word), len(other))
    return kindred or (
        abs(len(word) - len(other)) <= 1 and _is_one_slip_apart(word[begin:], other[begin:])
    )


def _is_one_slip_apart(mine: str, theirs: str) -> bool:
    """Return whether texts differ by one letter more, less or changed, or by two exchanged ones."""
    return (
        mine[1:] == theirs
        or mine == theirs[1:]
        or mine[1:] == theirs[1:]
        or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:])
    )
