"""Queries for events as conditions of SQL; pure."""

from collections.abc import Iterable, Sequence

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


def condition(query: Query, words: list[Sequence[str]]) -> str:
    """Return a query as a condition, and add what it compares to `words`.

    The condition refers to a list of words by its number, in the table ``words``.
    """

    def listed(values: Sequence[str]) -> str:
        words.append(values)
        return f"from words where number = {len(words) - 1}"

    parts = [
        f"{test} (select word {listed(values)})"
        for field, test in _FIELDS
        if (values := getattr(query, field))
    ]
    if query.ids:
        parts.append(f"id in (select try_cast(word as uuid) {listed(query.ids)})")
    if query.lineages and not query.sessions:
        parts.append("false")
    if query.upto:
        parts.append(f'epoch_ms("at") <= {int(query.upto)}')
    return " and ".join(parts) or "true"


def joined(queries: Iterable[Query]) -> list[Query]:
    """Return queries with those that name only ids as one: there may be thousands of these."""
    by_id = [query for query in queries if query == Query(ids=query.ids) and query.ids]
    others = [query for query in queries if query not in by_id]
    ids = tuple(event for query in by_id for event in query.ids)
    return [*others, Query(ids=ids)] if ids else others
