"""Prepares a plan for one partition: says which events pass, and why others do not; pure."""

from collections.abc import Sequence

from memorybus.events import Omission
from memorybus.query.query import EventRow, Query
from memorybus.query.ranges import WHOLE, Plan

_WANTED_FIELDS = (
    ("ids", "id"),
    ("users", "user"),
    ("agents", "agent"),
    ("workspaces", "workspace"),
    ("platforms", "platform"),
    ("types", "type"),
)
_EXCEPTED_FIELDS = (
    ("except_sessions", "session"),
    ("except_users", "user"),
    ("except_agents", "agent"),
    ("except_origins", "platform"),
)


class Matcher:
    """Answers as `Query.wants` does, but faster."""

    __slots__ = ("_excepted", "_origins", "_required", "_upto", "everything")

    def __init__(self, query: Query) -> None:
        self._required = [
            (field, frozenset(words))
            for name, field in _WANTED_FIELDS
            if (words := getattr(query, name))
        ]
        if query.sessions or query.lineages:
            self._required.append(("session", frozenset(query.sessions)))
        self._excepted = [
            (field, frozenset(words))
            for name, field in _EXCEPTED_FIELDS
            if (words := getattr(query, name))
        ]
        self._origins = frozenset(query.except_origins)
        self._upto = query.upto
        self.everything = not (self._required or self._excepted or self._upto)

    def wants(self, row: EventRow) -> bool:
        return (
            all(getattr(row, field) in words for field, words in self._required)
            and not any(getattr(row, field) in words for field, words in self._excepted)
            and not (row.origin and row.origin in self._origins)
            and not (self._upto and row.at > self._upto)
        )


class EventFilter:
    """Decides which events of one partition a reader passes on."""

    __slots__ = ("_forgotten", "_matcher", "_partition", "_plan", "needs_row", "takes_all")

    def __init__(self, plan: Plan, partition: int, forgotten: Sequence[Query] = ()) -> None:
        self._plan = plan if partition in plan.spans else WHOLE
        self._partition = partition
        self._matcher = Matcher(plan.query)
        self._forgotten = [Matcher(query) for query in forgotten]
        # whether an event's row matters; if not, its number decides
        self.needs_row = bool(self._forgotten) or not self._matcher.everything
        self.takes_all = not self.needs_row and self._plan is WHOLE  # whether everything passes

    def passes(self, n: int) -> bool:
        return self._plan is WHOLE or self._plan.takes(self._partition, n)

    def omission(self, row: EventRow) -> Omission | None:
        if any(forgotten.wants(row) for forgotten in self._forgotten):
            return "forgotten"
        return None if self._matcher.wants(row) else "filtered"
