"""Spells out English contractions, so that all parts of a question are whole words; pure.

So "won't" is not read as "won", "I'd" not as the French "d'", and "who'll" not as the name Will.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_SIGN = "['\u2019\u02bc\u00b4`]"
_VERBS = "do|does|did|is|was|are|were|has|have|had|would|could|should|must|need|might|ca|wo|sha|ai"
_NEGATED = re.compile(rf"\b({_VERBS})n{_SIGN}t\b", re.IGNORECASE)
_CUT: Final[Mapping[str, str]] = MappingProxyType(
    {"ca": "can", "wo": "do", "sha": "shall", "ai": "is"}
)
_ENDED = re.compile(
    rf"(?:(?<=\bi){_SIGN}(?=m\b)|(?<=[a-z]){_SIGN}(?=(?:d|ll|re|ve)\b))(\w+)", re.IGNORECASE
)
_ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {"m": "am", "d": "would", "ll": "shall", "re": "are", "ve": "have"}
)


def spelled_out(text: str) -> str:
    """Return a text with its English contractions spelled out; "'s" stays, as it may be a genitive.

    >>> spelled_out("I'm sure Ana won't go, and who'd know?")
    'I am sure Ana do not go, and who would know?'
    """
    whole = _NEGATED.sub(lambda found: f"{_CUT.get(found[1].lower(), found[1])} not", text)
    return _ENDED.sub(lambda found: f" {_ENDINGS[found[1].lower()]}", whole)
