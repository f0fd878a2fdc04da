"""Encodes texts for Postgres, which takes no zero character and no lone surrogate; pure.

A zero character is written as two characters of private use, and decoded to what it was. So no two
texts are held alike, and no two people's ids.
"""

from memorybus_providers.ranking.facts import clean

_ESCAPE, _ITSELF, _ZERO = "\ue000", "\ue000\ue001", "\ue000\ue002"

LONGEST_NAME = 200
"""Characters of a word or name that is looked up in an index, and of a token (G10)."""


def encode_text(text: str) -> str:
    """Return a text as Postgres can hold it.

    >>> shown(held("a\\0b\\ue000")) == "a\\0b\\ue000"
    True
    """
    text = clean(text)
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ITSELF).replace("\0", _ZERO)
    return text


def decode_text(text: str) -> str:
    """Return an encoded text as it was."""
    if _ESCAPE in text:
        return text.replace(_ZERO, "\0").replace(_ITSELF, _ESCAPE)
    return text
