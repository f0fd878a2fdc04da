"""Cuts a text that does not fit, so that what is left begins where it answers; pure."""

from typing import Final

from memorybus_providers.language.query import Question
from memorybus_providers.ranking.facts import passages

LEAST_CHARS = 100  # the fewest characters of a text that are worth showing if it is cut

_CUT: Final = "…"


def excerpt(text: str, room: int, question: Question) -> str:
    """Return at most `room` characters of a text; "" if it does not fit and they tell nothing.

    A text that is cut begins with its passage that says most of what is asked for.
    """
    if len(text) <= room:
        return text
    if room < LEAST_CHARS:
        return ""
    inner = room - 2 * len(_CUT)
    start = min(_start_of_answer(text, question), len(text) - inner)
    return f"{_CUT if start else ''}{text[start : start + inner].rstrip()}{_CUT}"


def _start_of_answer(text: str, question: Question) -> int:
    """Return where the passage begins that contains the most terms, the first of equal ones."""
    best = max(passages(text), key=lambda part: len(question.terms_in(part)))
    return text.index(best)
