"""Chooses lines of a block: those that suit a prompt and are not in its window; pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memorybus.text.cleaning import clean_text
from memorybus.text.fence import escape

WindowMessages = Sequence[Mapping[str, Any] | str]
"""Chat messages, OpenAI style, or their texts alone."""

_HEAD = re.compile(r"- (?:\[[^\]\n]*\] ?)?")
_CUT = "… "
_BETWEEN = "\x00"
"""Stands between two messages, so that no piece is found across them; no clean text has it."""

_WORD = re.compile(r"[^\W_]+")
_MIN_LETTERS = 4  # letters that a word must have to be compared: shorter words are mostly grammar
_STEM_LETTERS, _INFLECTED_LETTERS = 5, 4
"""How many letters of two forms of a word are compared: "planted" and "planting"; "лодка" and
"лодку"."""

_PAIRED_SCRIPTS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words, and Korean; they are compared by character pairs."""

_MIN_LINES = 4

_GRAMMAR_WORDS = """
    about also been could does doing down ever find from give have here into just know like make
    many more most much must need over please said same say should show some such tell than that
    them then there they thing think this time told very want went were what when where which
    while will with would your
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
"""English words that say nothing, although they are long enough to be compared.

Such words of other languages are found by counting, because many lines have them (`_common_words`).
"""


def relevant_lines(lines: Sequence[str], prompt: str) -> tuple[str, ...]:
    """Return the lines that share a telling word with a prompt, in their order.

    If there are at least `_MIN_LINES`, a word that more than half of them have does not count.
    """
    asked = _words(prompt)
    words_by_line = [_words(_HEAD.sub("", line, count=1)) for line in lines]
    common = _common_words(words_by_line)
    return tuple(
        line for line, words in zip(lines, words_by_line, strict=True) if (words & asked) - common
    )


def _common_words(words_by_line: Sequence[frozenset[str]]) -> frozenset[str]:
    if len(words_by_line) < _MIN_LINES:
        return frozenset()
    counts = Counter(word for words in words_by_line for word in words)
    return frozenset(word for word, count in counts.items() if count > len(words_by_line) / 2)


def _words(text: str) -> frozenset[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    paired = {
        run[i : i + 2]
        for run in _PAIRED_SCRIPTS.findall(folded)
        for i in range(max(1, len(run) - 1))
    }
    plain = _WORD.findall(_PAIRED_SCRIPTS.sub(" ", folded))
    telling = {w for w in plain if w not in _GRAMMAR and (len(w) >= _MIN_LETTERS or w.isdigit())}
    return frozenset(
        paired
        | {word[: _STEM_LETTERS if word.isascii() else _INFLECTED_LETTERS] for word in telling}
    )


def window_text(known: object) -> str:
    """Return the words of `WindowMessages` as `unseen_lines` searches them.

    What is no text is left out, whatever the caller gives: recall breaks no agent (G9).
    """
    messages = (known,) if isinstance(known, str) else known
    if not isinstance(messages, Sequence):
        return ""
    return _BETWEEN.join(
        _on_one_line(escape(clean_text(text))) for each in messages for text in message_texts(each)
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


def message_texts(message: object) -> Iterator[str]:
    content = message.get("content") if isinstance(message, Mapping) else message
    parts = content if isinstance(content, list | tuple) else (content,)
    for part in parts:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
