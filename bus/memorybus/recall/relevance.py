"""Tells which lines are related to a prompt, by their words alone; pure.

It is used for lines that were recalled for another prompt, when their provider has not answered
this prompt in time. In doubt it leaves a line out: an unrelated line costs the agent more than a
missing one.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_MIN_LETTERS = 4
"""Letters that a word must have to be compared: shorter words are mostly grammar."""

_STEM_LETTERS, _INFLECTED_LETTERS = 5, 4
"""How many letters of two forms of a word are compared: "planted" and "planting"; "лодка" and
"лодку"."""

_PAIRED_SCRIPTS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words, and Korean; they are compared by character pairs."""

_MIN_LINES = 4
_HEAD = re.compile(r"- \[[^\]]*\] ?")

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
    told = {w for w in plain if w not in _GRAMMAR and (len(w) >= _MIN_LETTERS or w.isdigit())}
    return frozenset(
        paired | {word[: _STEM_LETTERS if word.isascii() else _INFLECTED_LETTERS] for word in told}
    )
