"""The tombstones that a reader of the history knows: they say which events nobody may read."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memorybus.clock import Clock
from memorybus.errors import ArchiveError
from memorybus.events import Scope, TurnCompleted
from memorybus.query.filter import EventFilter, Matcher
from memorybus.query.query import EventRow, Query
from memorybus.query.ranges import Plan
from memorybus.text.display import iso

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

TOMBSTONE_AGE = 5.0  # seconds after which a reader looks for new tombstones


class KnownTombstones:
    """The tombstones that were read last; they are read again after `TOMBSTONE_AGE` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queries: tuple[Query, ...] = ()
        self._error: ArchiveError | None = None
        self._looked_at = float("-inf")

    def last_known(self, archive: "Archive") -> tuple[Query, ...]:
        """Return the queries of the tombstones when these could last be read."""
        self._refresh(archive)
        return self._queries

    def require_current(self, archive: "Archive") -> tuple[Query, ...]:
        self._refresh(archive)
        if self._error is not None:
            raise self._error
        return self._queries

    def _refresh(self, archive: "Archive") -> None:
        if self._clock.monotonic() - self._looked_at < TOMBSTONE_AGE:
            return
        try:
            self._queries = tuple(tombstone.query for tombstone in archive.tombstones())
            self._error = None
        except ArchiveError as error:
            self._error = error
        self._looked_at = self._clock.monotonic()


class EventFilters:
    """The filter of each partition for readers that show text; rebuilt for new tombstones."""

    def __init__(self, plan: Plan, forgotten: Callable[[], tuple[Query, ...]]) -> None:
        self._plan = plan
        self._read_forgotten = forgotten
        self._forgotten: tuple[Query, ...] = ()
        self._filters: dict[int, EventFilter] = {}

    def for_partition(self, partition: int) -> EventFilter:
        forgotten = self._read_forgotten()
        if forgotten != self._forgotten:
            self._forgotten, self._filters = forgotten, {}
        if partition not in self._filters:
            self._filters[partition] = EventFilter(self._plan, partition, forgotten)
        return self._filters[partition]


def turn_row(scope: Scope, session: str, at: int) -> EventRow:
    owner = (scope.agent, scope.user, scope.workspace, scope.platform)
    return EventRow("", session, TurnCompleted.__name__, *owner, origin="", at=at)


class Forgotten:
    """What tombstones hide: it may not come back with an import, whatever its id is now."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = [(Matcher(query), query.upto) for query in queries]

    def hides(self, scope: Scope, session: str, at: int) -> bool:
        """Return whether a turn is forgotten: its owner, its session, its time in milliseconds."""
        return bool(self.why(turn_row(scope, session, at)))

    def why(self, row: EventRow, *, timed: bool = True) -> str:
        """Return why an event is refused; "" if no tombstone hides it."""
        for matcher, upto in self._queries:
            if matcher.wants(row):
                until = f" up to {iso(upto)}" if upto else ""
                untimed = "" if timed else "; without a time, nothing shows that it was said later"
                return (
                    f"its owner ({row.user}, agent {row.agent}) was forgotten{until}{untimed}; "
                    "memorybus keeps out what was said before"
                )
        return ""


NOTHING_FORGOTTEN = Forgotten(())  # hides nothing
