"""Words that are one slip of the hand away from each other; pure.

A word that nobody in a scope ever wrote may be mistyped. What is compared with it are words that
begin with the same letter, and those that it would be without its first or with its first two
letters in turn.
"""

from typing import Final

from memorybus_providers.holographic.query import Term
from memorybus_providers.holographic.words import script_of, spelled

MAX_MISTYPED = 3
"""Unknown words of a question that are compared (G10)."""

LAST: Final = "\U0010ffff"
"""Sorts after whatever a word may go on with."""

_SHORTEST = 5
"""Letters of a word at least: shorter ones are near too many others."""

Span = tuple[str, str]
"""The tokens from the first to below the second."""


def may_be_mistyped(term: Term) -> bool:
    """Say whether a term is a word long enough, and no number, name in code or part of a word."""
    word = spelled(term.forms[0])[0]
    return len(word) >= _SHORTEST and word.isalpha() and script_of(word) == "spaced"


def spans_near(token: str) -> list[Span]:
    """Return where the tokens are that may be near a token's word."""
    word = spelled(token)[0]
    alone = (word[1:], word[1] + word[0] + word[2:])
    return [(word[0], word[0] + LAST), *((other, other + '"') for other in alone)]


def is_near(token: str, other: str) -> bool:
    """Say whether one letter too many, too few, another, or two in turn make a word the other.

    >>> is_near("restaurnat", "restaurant"), is_near("heron", "hero"), is_near("heron", "baron")
    (True, True, False)
    """
    word = spelled(token)[0]
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    start = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), -1)
    if start < 0:
        return True
    mine, theirs = word[start:], other[start:]
    return (
        mine[1:] == theirs
        or mine == theirs[1:]
        or mine[1:] == theirs[1:]
        or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:])
    )
