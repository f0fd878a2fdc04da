"""Tells which memories the caller's context window holds already; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memorybus.text.cleaning import clean_text
from memorybus.text.fence import escape

WindowMessages = Sequence[Mapping[str, Any] | str]
"""Chat messages, OpenAI style, or their texts alone."""

_HEAD = re.compile(r"- (?:\[[^\]\n]*\] )?")
_CUT = "… "
_BETWEEN = "\x00"
"""Stands between two messages, so that no piece is found across them; no clean text has it."""


def window_text(known: object) -> str:
    """Return the words of `WindowMessages` as `unseen_lines` searches them.

    What is no text is left out, whatever the caller gives: recall breaks no agent (G9).
    """
    messages = (known,) if isinstance(known, str) else known
    if not isinstance(messages, Sequence):
        return ""
    return _BETWEEN.join(
        _on_one_line(escape(clean_text(text))) for each in messages for text in _texts(each)
    )


def unseen_lines(lines: Sequence[str], window: str) -> tuple[str, ...]:
    """Return the lines of a block (`fence.line`) whose text the window does not contain.

    Dates, speakers, line breaks and the marks of a cut do not count.

    >>> unseen_lines(("- [2026-05-01, ann] I like tea …", "- tea"), window_text(["I like\\ntea!"]))
    ()
    """
    return tuple(text for text in lines if _said(text) not in window)


def unseen_by_provider(
    lines: Mapping[str, Sequence[str]], window: str
) -> dict[str, tuple[str, ...]]:
    """Return `unseen_lines` of each provider that has some."""
    unseen = {name: unseen_lines(given, window) for name, given in lines.items()}
    return {name: given for name, given in unseen.items() if given}


def _said(line: str) -> str:
    return _on_one_line(_HEAD.sub("", line, count=1)).strip(_CUT)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _texts(message: object) -> Iterator[str]:
    content = message.get("content") if isinstance(message, Mapping) else message
    parts = content if isinstance(content, list | tuple) else (content,)
    for part in parts:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
