"""Shares the room of a block between what people said and the long answers of assistants; pure."""

import re
from collections.abc import Sequence

import msgspec

from memorybus_providers.ranking.ranking import LINE_CHARS, Scored, is_answer

USUAL_SHARE = 0.2
ASKED_SHARE = 0.5
"""The share of answers, and their share if the prompt asks what the assistant answered."""

_ASKS_FOR_ANSWERS = re.compile(
    r"\b(?:did|have|had) you\b.{0,40}\b(?:recommend|suggest|advi[sc]e|sa(?:y|id)|tell|told|g[ai]ve"
    r"|propose|mention|provide|explain|help)"
    r"|\byou(?:['\u2019]ve| have| had)?(?: \w+ly| once| already| also| just)?"
    r" (?:recommended|suggested|advised|said|told|gave|given|proposed|mentioned|provided|explained"
    r"|helped)\b|\byour (?:\w+ )?(?:recommendation|suggestion|advice|proposal|explanation|answer)",
    re.IGNORECASE,
)
"""What the assistant answered lies in the past: "Can you suggest …" asks for something new."""


def share_of_answers(prompt: str) -> float:
    """Return the share of the room that answers may take."""
    return ASKED_SHARE if _ASKS_FOR_ANSWERS.search(prompt) else USUAL_SHARE


def merge(talk: Sequence[Scored], answers: Sequence[Scored], share: float) -> list[Scored]:
    """Return both in one order, in which answers never take more than their share of characters.

    An answer has the score of what it follows, since scores of two corpora do not compare.
    """
    if not is_answer(answers):
        return list(talk)
    if not is_answer(talk):
        return list(answers)
    merged: list[Scored] = []
    total = used = 0
    waiting = list(answers)
    for one in talk:
        while waiting and used + _chars(waiting[0]) <= share * (total + _chars(waiting[0])):
            answer = waiting.pop(0)
            used, total = used + _chars(answer), total + _chars(answer)
            merged.append(msgspec.structs.replace(answer, score=one.score))
        merged.append(one)
        total += _chars(one)
    return merged


def _chars(one: Scored) -> int:
    return len(one.fact.content) + LINE_CHARS
