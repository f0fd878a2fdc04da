"""Decides which texts ask rather than tell; pure."""

import re

MAX_QUESTION_CHARS = 120
"""Longer texts are no mere questions: people say what they know when they ask for something."""

_ENDING_CHARS = 400
"""Characters of a text's end in which its question mark is looked for."""

_MAX_EXCLAMATION_WORDS = 3
"""Words of an exclamation that tells nothing: "Wow, nice!"."""

_CAPTION = r"(?:\[[^\[\]]*\]\s*)?$"
_QUESTION_MARK = re.compile(rf"\?[\s!\"'”’)]*{_CAPTION}")
_LAST_CAPTION = re.compile(_CAPTION)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def asks(text: str) -> bool:
    """Say whether a text ends with a question; a caption in brackets may follow it."""
    ending = text[-_ENDING_CHARS:]
    return "?" in ending and bool(_QUESTION_MARK.search(ending))


def only_asks(text: str) -> bool:
    """Say whether a text consists only of questions and short exclamations."""
    if not asks(text) or len(text) > MAX_QUESTION_CHARS:
        return False
    sentences = _SENTENCE_END.split(_LAST_CAPTION.sub("", text).strip())
    return all(_is_question(one) or len(one.split()) <= _MAX_EXCLAMATION_WORDS for one in sentences)


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("!\"'”’) ").endswith("?")
