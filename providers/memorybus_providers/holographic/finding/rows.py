"""How a fact is read: the columns of a `Fact`, and whose facts a query may see."""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from memorybus_providers.base import RecallScope
from memorybus_providers.holographic.schema import prefix
from memorybus_providers.holographic.writing.judgements import trust_of
from memorybus_providers.ranking.facts import clean
from memorybus_providers.ranking.ranking import Fact

LATEST: Final = (1 << 63) - 1
"""A time that nothing is later than, as far as SQLite can tell."""

SCOPES: Final = """
select id from scopes where (:agent is null or agent = :agent)
    and (:user is null or user = :user) and (:workspace is null or workspace = :workspace)
"""
"""The rows of the scopes that a recall may see; its parameters are those of `limits_of`."""

_SIZES = f"select id, facts from scopes where id in ({SCOPES}) order by id"  # noqa: S608

FACT: Final = """
select facts.id, facts.session, facts.seq, coalesce(helpful, 0), coalesce(unhelpful, 0),
    facts.name, sessions.name, facts.kind, facts.speaker, facts.at, facts.content, facts.category,
    facts.tags, lower(hex(facts.event_id)), facts.retrieval_count
from facts join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
"""
"""Selects what `fact_of` takes."""


def fact_of(
    row: int, session: int, seq: int | None, helpful: int, unhelpful: int, *more: Any
) -> Fact:
    """Return the fact of a row that `FACT` selects."""
    place = None if seq is None else (session, seq)
    return Fact(row, place, trust_of(helpful, unhelpful), *more)


def asked(db: sqlite3.Connection, limits: Mapping[str, str | int | None]) -> tuple[int, list[str]]:
    """Return how many facts may be seen, and what the tokens of each scope begin with."""
    rows = db.execute(_SIZES, limits).fetchall()
    return sum(size for _, size in rows), [prefix(scope) for scope, size in rows if size]


def limits_of(scope: RecallScope) -> dict[str, str | None]:
    """Return whose facts may be seen, as the parameters of `SCOPES`."""
    parts = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
    return {name: value if value is None else clean(value) for name, value in parts.items()}
