"""What an unknown word may have meant: one a slip of the hand away, or one of its family; pure.

A word that nobody in a scope ever wrote may be mistyped, or derived further than stems go:
"allergic" where it says "allergies". What is compared with it are words that begin with the same
letter, and those that it would be without its first or with its first two letters in turn.
"""

from typing import Final

from memorybus_providers.language.query import Term
from memorybus_providers.language.words import script_of, split_token

MAX_UNKNOWN = 3
"""Unknown words of a question that are compared (G10)."""

LAST: Final = "\U0010ffff"
"""Sorts after whatever a word may go on with."""

_SHORTEST = 5
"""Letters of a word at least: shorter ones are near too many others."""

_ALIKE = 0.6
"""The share of the longer word that words of a family begin with alike."""

TokenSpan = tuple[str, str]
"""The tokens from the first to below the second."""


def may_mean_another(term: Term) -> bool:
    """Say whether a term is a word long enough, and no number, name in code or part of a word."""
    word = split_token(term.forms[0])[0]
    return len(word) >= _SHORTEST and word.isalpha() and script_of(word) == "spaced"


def spans_near(token: str) -> list[TokenSpan]:
    """Return where the tokens are that may be near a token's word."""
    word = split_token(token)[0]
    alone = (word[1:], word[1] + word[0] + word[2:])
    return [(word[0], word[0] + LAST), *((other, other + '"') for other in alone)]


def is_near(token: str, other: str) -> bool:
    """Say whether a token's word may have meant another.

    >>> is_near("heorn", "heron"), is_near("heron", "hero"), is_near("heron", "baron")
    (True, True, False)
    >>> is_near("allergic", "allergies"), is_near("conference", "confession")
    (True, False)
    """
    word = split_token(token)[0]
    differ = (n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b)
    begin = next(differ, min(len(word), len(other)))
    kindred = begin >= _SHORTEST and begin >= _ALIKE * max(len(word), len(other))
    return kindred or (
        abs(len(word) - len(other)) <= 1 and _is_one_slip_apart(word[begin:], other[begin:])
    )


def _is_one_slip_apart(mine: str, theirs: str) -> bool:
    """Say whether one letter too many, too few, another, or two in turn are all the difference."""
    return (
        mine[1:] == theirs
        or mine == theirs[1:]
        or mine[1:] == theirs[1:]
        or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:])
    )
