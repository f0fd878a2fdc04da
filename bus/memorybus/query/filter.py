"""A plan made ready for one partition: which events pass, and why others do not; pure.

Words become sets once, so that a lineage of ten thousand sessions costs what one costs.
"""

from collections.abc import Sequence

from memorybus.events import Omission
from memorybus.query.query import Query, Row
from memorybus.query.ranges import WHOLE, Plan

_ASKED = (
    ("ids", "id"),
    ("users", "user"),
    ("agents", "agent"),
    ("workspaces", "workspace"),
    ("platforms", "platform"),
    ("types", "type"),
)
_EXCEPTED = (
    ("except_sessions", "session"),
    ("except_users", "user"),
    ("except_agents", "agent"),
    ("except_origins", "platform"),
)


class Matcher:
    """Says what `Query.wants` says, quicker."""

    __slots__ = ("_asked", "_excepted", "_origins", "everything")

    def __init__(self, query: Query) -> None:
        """Make the sets."""
        self._asked = [
            (field, frozenset(words)) for name, field in _ASKED if (words := getattr(query, name))
        ]
        if query.sessions or query.lineages:
            self._asked.append(("session", frozenset(query.sessions)))
        self._excepted = [
            (field, frozenset(words))
            for name, field in _EXCEPTED
            if (words := getattr(query, name))
        ]
        self._origins = frozenset(query.except_origins)
        self.everything = not (self._asked or self._excepted)

    def wants(self, row: Row) -> bool:
        """Say whether a row is wanted."""
        return (
            all(getattr(row, field) in words for field, words in self._asked)
            and not any(getattr(row, field) in words for field, words in self._excepted)
            and not (row.origin and row.origin in self._origins)
        )


class Sieve:
    """What a reader lets pass of one partition.

    Attributes:
        looks: whether an event's row matters; if not, its number tells all.
        open: whether everything passes.
    """

    __slots__ = ("_forgotten", "_matcher", "_partition", "_plan", "looks", "open")

    def __init__(self, plan: Plan, partition: int, forgotten: Sequence[Query] = ()) -> None:
        """Prepare.

        Args:
            plan: what is taken.
            partition: of which.
            forgotten: what nobody may read any more.
        """
        self._plan = plan if partition in plan.spans else WHOLE
        self._partition = partition
        self._matcher = Matcher(plan.query)
        self._forgotten = [Matcher(query) for query in forgotten]
        self.looks = bool(self._forgotten) or not self._matcher.everything
        self.open = not self.looks and self._plan is WHOLE

    def passes(self, n: int) -> bool:
        """Say whether a number is taken."""
        return self._plan is WHOLE or self._plan.takes(self._partition, n)

    def holds(self, row: Row) -> Omission | None:
        """Return why a row is left out, None if it is taken."""
        if any(forgotten.wants(row) for forgotten in self._forgotten):
            return "forgotten"
        return None if self._matcher.wants(row) else "filtered"
