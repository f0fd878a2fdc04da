"""What a text becomes before it is stored: clean, in passages, with the names in it; pure."""

import re

PASSAGE = 1_200
"""Longer utterances are kept as passages of at most this many characters: recall gives whole
facts, and one that fills the budget leaves no room for others."""

NAMES_PER_FACT = 20
"""Names linked with one fact at most (G10)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = ("\n\n", "\n", ". ", "! ", "? ", " ")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]{1,40}(?: [A-Z][\w'-]{1,40}){0,3}")


def clean(text: str) -> str:
    """Return the text with what UTF-8 cannot hold (lone surrogates) as replacement characters."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def passages(text: str) -> list[str]:
    """Cut a text into verbatim pieces of at most `PASSAGE` characters; a blank text has none.

    A cut falls on the last paragraph, line, sentence or word that ends in the piece's second half.
    """
    if len(text) <= PASSAGE:
        return [text] if text and not text.isspace() else []
    pieces = []
    start = 0
    while start < len(text):
        end = _end(text, start)
        pieces.append(text[start:end].strip())
        start = end
    return [piece for piece in pieces if piece]


def names_in(text: str) -> list[str]:
    """Return the proper names a text mentions: capitalised words that do not begin a sentence."""
    return list(dict.fromkeys(_NAME.findall(text)))[:NAMES_PER_FACT]


def _end(text: str, start: int) -> int:
    limit = start + PASSAGE
    if limit >= len(text):
        return len(text)
    for mark in _BREAKS:
        found = text.rfind(mark, limit - PASSAGE // 2, limit)
        if found > 0:
            return found + len(mark)
    return limit
