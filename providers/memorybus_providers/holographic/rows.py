"""The columns from which a `Fact` is read, and the scopes whose facts a query may see."""

import json
import sqlite3
from typing import Final

from memorybus_providers.base import RecallScope
from memorybus_providers.ranking.facts import clean

SCOPES: Final = "select value from json_each(:scopes)"
"""The rows of the scopes that a recall may see; its parameter is that of `limits_of`."""

IS_OUT: Final = "state = 'archived' and (successor <> '' or used <= since)"
"""Whether a curated fact is in no prompt: what was used since it was archived comes back."""

FACT: Final = """
select facts.id, facts.session, facts.seq, coalesce(helpful, 0), coalesce(unhelpful, 0),
    facts.name, sessions.name, facts.kind, facts.speaker, facts.at, facts.content, facts.category,
    facts.tags, lower(hex(facts.event_id)), facts.retrieval_count, coalesce(used, 0),
    coalesce(state, '') = 'archived'
from facts join sessions on sessions.id = facts.session
left join judgements on judgements.scope = facts.scope and judgements.fact = facts.name
left join curations on curations.scope = facts.scope and curations.fact = facts.name
"""
"""Selects the columns that `finding.source.fact_of` takes."""


def rows_of(db: sqlite3.Connection, scope: RecallScope) -> list[int]:
    """Return the rows of the scopes that a recall may see.

    A statement with optional parts ("agent is null or …") would read the scopes of all tenants.
    """
    parts = {"agent": scope.agent, "user": scope.user, "workspace": scope.workspace}
    given = {name: clean(part) for name, part in parts.items() if part is not None}
    where = " and ".join(f"{name} = :{name}" for name in given) or "true"
    return [row for (row,) in db.execute(f"select id from scopes where {where}", given)]  # noqa: S608


def limits_of(db: sqlite3.Connection, scope: RecallScope) -> dict[str, str]:
    """Return a scope as the parameter of `SCOPES`."""
    return {"scopes": json.dumps(rows_of(db, scope))}
