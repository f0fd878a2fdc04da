"""What nobody shall read any more, as one reader of the history knows it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from memorybus.archive.tombstones import Tombstone
from memorybus.clock import Clock
from memorybus.errors import ArchiveError
from memorybus.query.filter import EventFilter
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

TOMBSTONE_AGE = 5.0
"""Seconds after which is looked for new tombstones."""


class TombstoneSource(Protocol):
    """What this needs of the archive."""

    def tombstones(self) -> Sequence[Tombstone]:
        """Return the tombstones."""
        ...


class KnownTombstones:
    """Knows the tombstones, and looks for new ones every `TOMBSTONE_AGE` seconds, in vain too."""

    def __init__(self, clock: Clock) -> None:
        """Know nothing yet."""
        self._clock = clock
        self._queries: tuple[Query, ...] = ()
        self._error: ArchiveError | None = None
        self._looked_at = float("-inf")

    def last_known(self, archive: TombstoneSource) -> tuple[Query, ...]:
        """Return what they hid when they could last be read."""
        self._refresh(archive)
        return self._queries

    def require_current(self, archive: TombstoneSource) -> tuple[Query, ...]:
        """Return what they hide.

        Raises:
            ArchiveError: they cannot be read, so nothing may be shown.
        """
        self._refresh(archive)
        if self._error is not None:
            raise self._error
        return self._queries

    def _refresh(self, archive: TombstoneSource) -> None:
        if self._clock.monotonic() - self._looked_at < TOMBSTONE_AGE:
            return
        try:
            self._queries = tuple(one.query for one in archive.tombstones())
            self._error = None
        except ArchiveError as error:
            self._error = error
        self._looked_at = self._clock.monotonic()


class EventFilters:
    """What passes of each partition where text is shown; made anew when more is forgotten."""

    def __init__(self, plan: Plan, forgotten: Callable[[], tuple[Query, ...]]) -> None:
        """Ask nothing yet.

        Args:
            plan: what is wanted.
            forgotten: returns what nobody shall read any more, or raises `ArchiveError`.
        """
        self._plan = plan
        self._read_forgotten = forgotten
        self._forgotten: tuple[Query, ...] = ()
        self._filters: dict[int, EventFilter] = {}

    def for_partition(self, partition: int) -> EventFilter:
        """Return what passes now.

        Raises:
            ArchiveError: nobody knows what is forgotten.
        """
        forgotten = self._read_forgotten()
        if forgotten != self._forgotten:
            self._forgotten, self._filters = forgotten, {}
        if partition not in self._filters:
            self._filters[partition] = EventFilter(self._plan, partition, forgotten)
        return self._filters[partition]
