"""Splits a provider's text into paragraphs and list items, which become recollections; pure."""

import re
from collections.abc import Iterator

_PARTS = re.compile(r"\n\s*\n|\n[ \t]*§[ \t]*\n")
_ITEM = re.compile(r"\s*[-*•]\s+")
_HEADING = re.compile(r"#{1,6}\s[^\n]*")


def split_passages(text: str) -> list[str]:
    """Return the paragraphs and list items of a text, without headings.

    A memory block takes a recollection as a whole or not at all, so a long text would never fit.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [
        part
        for paragraph in _PARTS.split(f"\n{text}\n")
        for part in _items(paragraph.strip())
        if part and not _HEADING.fullmatch(part)
    ]


def _items(paragraph: str) -> Iterator[str]:
    lines = paragraph.split("\n")
    if _HEADING.fullmatch(lines[0]):
        lines = lines[1:]
    if lines and all(map(_ITEM.match, lines)):
        yield from (_ITEM.sub("", line, count=1).strip() for line in lines)
    else:
        yield "\n".join(lines).strip()
