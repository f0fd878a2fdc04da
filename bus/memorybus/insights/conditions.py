"""Queries for events as conditions of SQL; pure."""

from collections.abc import Iterable
from typing import Any

from memorybus.query.query import Query

_FIELDS = (
    ("sessions", '"session" in'),
    ("users", '"user" in'),
    ("agents", "agent in"),
    ("workspaces", "workspace in"),
    ("platforms", "platform in"),
    ("types", '"type" in'),
    ("except_sessions", '"session" not in'),
    ("except_users", '"user" not in'),
    ("except_agents", "agent not in"),
    ("except_origins", "platform not in"),
)


def condition(query: Query, values: list[Any]) -> str:
    """Return a query as a condition, and add the values of its parameters to `values`."""

    def parameter(value: object) -> str:
        values.append(value)
        return f"$v{len(values) - 1}"

    parts = [
        f"{test} (select unnest({parameter(list(words))}))"
        for field, test in _FIELDS
        if (words := getattr(query, field))
    ]
    if query.ids:
        parts.append(f"id in (select try_cast(unnest({parameter(list(query.ids))}) as uuid))")
    if query.lineages and not query.sessions:
        parts.append("false")
    if query.upto:
        parts.append(f'epoch_ms("at") <= {parameter(query.upto)}')
    return " and ".join(parts) or "true"


def joined(queries: Iterable[Query]) -> list[Query]:
    """Return queries with those that name only ids as one: there may be thousands of these."""
    by_id = [query for query in queries if query == Query(ids=query.ids) and query.ids]
    others = [query for query in queries if query not in by_id]
    ids = tuple(event for query in by_id for event in query.ids)
    return [*others, Query(ids=ids)] if ids else others
