"""The two sources of the history: the log, and the archive, which is opened only when needed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from memorybus.clock import Clock
from memorybus.history.forgotten import KnownTombstones
from memorybus.history.log_reader import LogReader
from memorybus.log.stream import EventLog
from memorybus.query.filter import EventFilter
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

END = f"{(1 << 64) - 1}-{(1 << 64) - 1}"  # an id greater than that of any entry


class Sources:
    """The log and the archive of one history. Use from one thread."""

    def __init__(
        self,
        log: EventLog,
        archive: "Archive | None",
        find: "Callable[[], Archive | None] | None",
        clock: Clock,
    ) -> None:
        self.log = log  # the end of the history
        self.reader = LogReader(log.redis, log.keys)  # reads the log through a filter
        self._find = find
        self._archive = archive
        self._forgotten = KnownTombstones(clock)

    def archive(self) -> "Archive | None":
        """Return the archive, and open it if necessary; None if the log does not exist yet."""
        if self._archive is None and self._find is not None:
            self._archive = self._find()
        return self._archive

    def forgotten_queries(self) -> tuple[Query, ...]:
        """Return the queries of the tombstones, for a caller that shows text."""
        archive = self.archive()
        return self._forgotten.require_current(archive) if archive else ()

    def build_filter(self, plan: Plan, partition: int) -> EventFilter:
        """Return the filter for reading the log.

        It honours the tombstones if the archive is open, and the last known ones while the archive
        is away. A live lane that does not need the archive ignores tombstones: an event that is
        still in the log is on its way to every provider.
        """
        queries = self._forgotten.last_known(self._archive) if self._archive else ()
        return EventFilter(plan, partition, queries)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()
