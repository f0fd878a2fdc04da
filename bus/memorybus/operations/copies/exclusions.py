"""Which option of a rebuild leaves an event out; pure."""

from collections.abc import Mapping

import msgspec

from memorybus.events import Omitted
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import EVERYTHING, Query, row_of
from memorybus.query.ranges import Plan

UNTIL = "until"

_OPTIONS = (
    ("except_session", "except_sessions"),
    ("except_user", "except_users"),
    ("except_agent", "except_agents"),
    ("except_origin", "except_origins"),
)


class Excepting:
    """Tells the options of a plan apart.

    Attributes:
        options: those that the plan has, in the order in which they are asked.
    """

    def __init__(self, plan: Plan) -> None:
        """Part the plan by its options."""
        self._plan = plan
        self._queries: Mapping[str, Query] = {
            option: msgspec.structs.replace(EVERYTHING, **{field: words})
            for option, field in _OPTIONS
            if (words := getattr(plan.query, field))
        }
        self.options = (*((UNTIL,) if plan.spans else ()), *self._queries)

    def option(self, event: LoggedEvent) -> str:
        """Return the first option that leaves an event out, "" if none does."""
        where = event.position
        if not self._plan.takes(where.partition, where.n):
            return UNTIL
        if not self._queries or isinstance(event.envelope.event, Omitted):
            return ""
        row = row_of(event.envelope)
        return next((o for o, query in self._queries.items() if not query.wants(row)), "")


def joined(query: Query, more: Query) -> Query:
    """Return a query that leaves out what either of two does."""
    words = {
        field: tuple(dict.fromkeys(getattr(query, field) + getattr(more, field)))
        for _, field in _OPTIONS
    }
    return msgspec.structs.replace(more, **words)
