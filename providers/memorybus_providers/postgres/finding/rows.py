"""Reads facts: the columns of a `Fact`, and rows as facts."""

from collections.abc import Iterable
from typing import Any

from memorybus_providers.finding.source import fact_of
from memorybus_providers.postgres.texts import decode_text
from memorybus_providers.ranking.ranking import Fact

FACT = """
select facts.id, facts.session, facts.seq, coalesce(helpful, 0), coalesce(unhelpful, 0),
    facts.name, sessions.name, facts.kind, facts.speaker, facts.at, facts.content, facts.category,
    facts.tags, encode(facts.event_id, 'hex'), facts.retrieval_count, coalesce(used, 0),
    coalesce(state, '') = 'archived'
from facts join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
left join curations on curations.scope = facts.scope and curations.fact = facts.name
"""
"""Selects the columns that `facts_of` takes."""


def facts_of(rows: Iterable[tuple[Any, ...]]) -> list[Fact]:
    """Return the facts of rows that `FACT` selects."""
    return [_fact(*row) for row in rows]


def _fact(
    row: int, session: int, seq: int | None, helpful: int, unhelpful: int, *more: Any
) -> Fact:
    texts = (decode_text(one) if isinstance(one, str) else one for one in more)
    return fact_of(row, session, seq, helpful, unhelpful, *texts)
