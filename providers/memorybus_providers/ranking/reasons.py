"""Explains to a person why a fact was found; pure."""

import re
from datetime import UTC, tzinfo

from memorybus_providers.base import Why
from memorybus_providers.language.query import parse_question
from memorybus_providers.language.sentences import split_prompt
from memorybus_providers.ranking.ranking import LOOKED_AT, Scored

_WORD = re.compile(r"[^\W_]+")


def explain(question: str, scored: Scored, now: int | None = None, zone: tzinfo = UTC) -> Why:
    """Return the words that a fact shares with a question, and the parts of its score.

    A fact that shares no word was found by the conversation around it, or by the time when it was
    said.

    Args:
        now: when it was asked, milliseconds; see `parse_question`.
        zone: the time zone in which days begin.
    """
    asked = parse_question(*split_prompt(question), now, zone)
    words = dict.fromkeys(_WORD.findall(scored.fact.content[:LOOKED_AT]))
    matched = tuple(word for word in words if asked.asks_for(word))
    return Why(matched, scored.near, dict(scored.parts))
