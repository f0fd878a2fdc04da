"""Decides what kind of answer a question wants, and which facts look like it; pure, for English.

A question that begins with "when" is answered by a text that names a time, "how many" by a number,
"where" by a place, "what" and "which" mostly by a name. A question in another language, or of no
such kind, wants no kind in particular.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from memorybus_providers.language.english import MONTHS

_TIME_TEXT = """
yesterday today tonight tomorrow ago last next past coming since recently soon just weekend spring
summer autumn fall winter
"""
_DAY_TEXT = "monday tuesday wednesday thursday friday saturday sunday"
_NUMBER_TEXT = """
one two three four five six seven eight nine ten dozen once twice couple few several first second
third hundred thousand half
"""
_PLACE_TEXT = """
home city town country village park beach place mountain mountains school store shop center
"""
_TIMES = frozenset((*_TIME_TEXT.split(), *_DAY_TEXT.split())) | (MONTHS.keys() - {"may"})
_NUMBERS = frozenset(_NUMBER_TEXT.split())
_PLACES = frozenset(_PLACE_TEXT.split())
_WORD = re.compile(r"[a-z]+")
_DATES = "|".join(name.title() for name in (*MONTHS, *_DAY_TEXT.split()))
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_AT_NAME = re.compile(rf"\b(?:in|at|to|from|near|visit\w*) (?:the )?(?!I\b|{_DATES})[A-Z]\w")
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z]\w|[\"“][A-Z]")


class AnswerKind(msgspec.Struct, frozen=True):
    """A kind of answer.

    Attributes:
        asked: matches questions that want this kind, by their beginning or their words.
        fits: whether a text looks like such an answer.
        factor: by how much the score of such a text is multiplied.
    """

    asked: re.Pattern[str]
    fits: Callable[[str], bool]
    factor: float


def _tells_time(text: str) -> bool:
    return _names_any(_TIMES, text) or bool(_YEAR.search(text))


def _tells_number(text: str) -> bool:
    return bool(_DIGIT.search(text)) or _names_any(_NUMBERS, text)


def _tells_place(text: str) -> bool:
    return bool(_AT_NAME.search(text)) or _names_any(_PLACES, text)


def _tells_name(text: str) -> bool:
    return bool(_NAME.search(text))


def _names_any(words: frozenset[str], text: str) -> bool:
    return not words.isdisjoint(_WORD.findall(text.lower()))


KINDS: Final[Mapping[str, AnswerKind]] = MappingProxyType(
    {
        "time": AnswerKind(
            re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|week|month|year|time)\b"),
            _tells_time,
            1.5,
        ),
        "number": AnswerKind(
            re.compile(r"\bhow (?:many|much|long|often|old|far)\b"), _tells_number, 1.4
        ),
        "place": AnswerKind(
            re.compile(r"^where\b|\b(?:what|which) (?:city|country|state|place|town)\b"),
            _tells_place,
            1.6,
        ),
        "name": AnswerKind(re.compile(r"^(?:what|which)\b"), _tells_name, 1.2),
    }
)
"""The kinds, by what they tell; the first that a question asks for is the one it wants."""


def wanted_kind(question: str) -> AnswerKind | None:
    """Return the kind of answer that a question wants, or None.

    Args:
        question: its words in lower case, separated by spaces.
    """
    return next((kind for kind in KINDS.values() if kind.asked.search(question)), None)
