"""Prepares texts for a service; pure."""

import re
from collections.abc import Iterator

_BREAK = re.compile(r"\s")

_DIGITS = re.compile(r"[0-9]{1,15}")

LONGEST_QUESTION = 2_000
"""The most characters of a question that are sent to a service, which makes one vector of it."""


def clean_question(query: str) -> str:
    """Return a query trimmed and cut to `LONGEST_QUESTION`; "" if it is blank."""
    return sendable(query).strip()[:LONGEST_QUESTION].strip()


def sendable(text: str) -> str:
    """Return a text without NUL, which Postgres cannot store, and without lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def split_text(text: str, most: int) -> Iterator[str]:
    """Yield a text in parts of at most `most` characters, which together are the text.

    It is split before white space if there is any in the last tenth of a part. Parts of nothing but
    white space are left out.
    """
    start = 0
    while start < len(text):
        end = _end(text, start, most)
        part = text[start:end]
        if part.strip():
            yield part
        start = end


def _end(text: str, start: int, most: int) -> int:
    if len(text) - start <= most:
        return len(text)
    end = start + most
    for at in range(end, end - most // 10, -1):
        if _BREAK.match(text, at):
            return at
    return end


def parse_milliseconds(written: str | None) -> int:
    """Return a time from our metadata of a text, milliseconds; 0 if `written` is not a time."""
    return int(written) if written and _DIGITS.fullmatch(written) else 0
