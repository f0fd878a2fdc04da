"""Texts as Postgres can hold them: no zero character, no lone surrogate; pure.

A zero character is spelled by two characters of private use, and read back as it was: no two texts
are held alike, so that no two people's ids are, either.
"""

from memorybus_providers.ranking.facts import clean

_ESCAPE, _ITSELF, _ZERO = "\ue000", "\ue000\ue001", "\ue000\ue002"

LONGEST_NAME = 200
"""Characters of a word or name that is looked up in an index, and of a token (G10)."""


def held(text: str) -> str:
    """Return a text as it is held.

    >>> shown(held("a\\0b\\ue000")) == "a\\0b\\ue000"
    True
    """
    text = clean(text)
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ITSELF).replace("\0", _ZERO)
    return text


def shown(text: str) -> str:
    """Return a held text as it was."""
    if _ESCAPE in text:
        return text.replace(_ZERO, "\0").replace(_ITSELF, _ESCAPE)
    return text
