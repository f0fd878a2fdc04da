"""Decides which texts ask rather than tell, and which tell nothing at all; pure."""

import re

from memorybus.small_talk import says_nothing

MAX_QUESTION_CHARS = 120
"""Longer texts are no mere questions: people say what they know when they ask for something."""

_ENDING_CHARS = 400  # characters of a text's end in which its question mark is looked for

_MAX_EXCLAMATION_WORDS = 3  # words of an exclamation that tells nothing: "Wow, nice!"

_CAPTION = r"(?:\[[^\[\]]*\]\s*)?$"
_QUESTION_MARK = re.compile(rf"\?[\s!\"'”’)]*{_CAPTION}")
_LAST_CAPTION = re.compile(_CAPTION)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


_ASKS_ON = re.compile(
    r"(?:\s*[,;:–-]\s*(?:(?:so|and|but)\s+)?|\s(?:so|and|but)\s+)(?:can|could|would|will|do|did"
    r"|does|what|how|where|which|should|is|are|any)\s+(?:you|i|we|it|there|that|this|the|about"
    r"|ideas?|tips|do|would|should|can)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
"""The end of a sentence that asks, after what it tells: "…, so can you help me?"."""

_OPENS_QUESTION = re.compile(
    r"\s*(?:what|how|when|where|who|which|why|can|could|would|will|do|does|did|is|are|should|any)\b",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Return whether a text ends with a question; a caption in brackets may follow it."""
    ending = text[-_ENDING_CHARS:]
    return "?" in ending and bool(_QUESTION_MARK.search(ending))


def only_asks(text: str) -> bool:
    """Return whether a text consists only of questions and short exclamations."""
    if not asks(text) or len(text) > MAX_QUESTION_CHARS:
        return False
    sentences = _SENTENCE_END.split(_LAST_CAPTION.sub("", text).strip())
    return all(
        _is_question(sentence) or len(sentence.split()) <= _MAX_EXCLAMATION_WORDS
        for sentence in sentences
    )


def statement_of(sentence: str, start: int = 0) -> str:
    """Return what a sentence tells before it asks: all, or "" if it only asks.

    Args:
        start: where it may begin to ask.
    """
    asking = _ASKS_ON.search(sentence, start)
    if asks(sentence) and (asking is None or _OPENS_QUESTION.match(sentence)):
        return ""
    return sentence[: asking.start()] if asking else sentence


def tells(text: str, kind: str, *, answered: bool) -> bool:
    """Return whether something said is a memory: it is no small talk, and no answered question.

    Args:
        kind: its kind; only a person's question has its answer beside it.
        answered: whether something was said after it.
    """
    return not (says_nothing(text) or (answered and kind == "user" and only_asks(text)))


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("!\"'”’) ").endswith("?")
