"""Encodes texts for Postgres, which accepts neither zero characters nor lone surrogates; pure.

A zero character is written as two characters of private use, and decoded again. So different texts,
and different people's ids, stay different.
"""

from memorybus_providers.ranking.facts import clean

_ESCAPE, _ITSELF, _ZERO = "\ue000", "\ue000\ue001", "\ue000\ue002"

LONGEST_NAME = 200
"""The most characters of a token, and of a word or name that is looked up in an index (G10)."""


def encode_text(text: str) -> str:
    """Return a text as Postgres can store it.

    >>> decode_text(encode_text("a\\0b\\ue000")) == "a\\0b\\ue000"
    True
    """
    text = clean(text)
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ITSELF).replace("\0", _ZERO)
    return text


def decode_text(text: str) -> str:
    """Return the text that was encoded."""
    if _ESCAPE in text:
        return text.replace(_ZERO, "\0").replace(_ITSELF, _ESCAPE)
    return text
