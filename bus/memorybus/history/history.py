"""History: archive and log read as one ordered sequence, by partition and over all of them.

Live lanes, replays, rebuilds and the commands that show the past all read through it.
"""

from collections.abc import Iterator, Sequence

import msgspec
from redis import Redis

from memorybus.archive.format.manifest import Place
from memorybus.archive.location import archive_of
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.history.backward import Back
from memorybus.history.forward import Scan, in_order
from memorybus.history.joined import Joined
from memorybus.history.lineages import descendants
from memorybus.history.positions import Finder
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import EventLog, Head
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import Plan


class History(Joined):
    """Reads the whole past (see `Joined`)."""

    @classmethod
    def of(cls, redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "History":
        """Return the history that the settings name; no I/O yet."""
        log = EventLog(redis, settings, clock)
        return cls(log, find=lambda: archive_of(redis, settings, clock), clock=clock)

    def scan(
        self,
        query: Query = EVERYTHING,
        since: int | None = None,
        until: int | None = None,
        *,
        plan: Plan | None = None,
        damage: list[str] | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events of all partitions in the order in which Redis took them.

        Memory does not grow with the history. What came while this reads may be there, or not.
        What a tombstone hides is not shown, also if only the log has it; while nobody knows what
        that is (`ArchiveError`), nothing is.

        Args:
            query: which events; lineages are resolved.
            since: the earliest time of an event (milliseconds).
            until: the time before which events are wanted (milliseconds).
            plan: which numbers, too; its query is not looked at.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        wanted = Plan(query=self.resolve(query), spans=plan.spans if plan else {})
        scan = Scan(self, wanted, since, until, damage)
        return in_order([scan.partition(p) for p in range(self.log.partitions)])

    def newest(
        self,
        query: Query = EVERYTHING,
        heads: Sequence[Head] | None = None,
        *,
        damage: list[str] | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events of all partitions, newest first: the reverse of `scan`.

        It reads back only as far as it is asked for events. Lineages are looked up, which reads
        their beginnings in the whole history, when the archive is first needed; until then events
        of every lineage come, and whoever asks for some has to choose. Tombstones: as for `scan`.

        Args:
            query: which events.
            heads: the ends from which it reads back; the present ones if None.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        everywhere = msgspec.structs.replace(query, lineages=())
        back = Back(self, everywhere, lambda: self.resolve(query), damage)
        return back.events(self.log.heads() if heads is None else heads)

    def resolve(self, query: Query) -> Query:
        """Return a query with its lineages as sessions: each named one, and all that came from it.

        A session that a branch, a compression or a delegation began came from its parent; one that
        was resumed or reset did not. Reads the beginnings and switches of the whole history.
        """
        if not query.lineages:
            return query
        return descendants(query, (one.envelope for one in self.scan(LINEAGE)))

    def place(self, partition: int, n: int) -> Place | None:
        """Return the place of a dense number, or the last one before it; None if there is none."""
        return Finder(self).place(partition, n)

    def places(self, moment: int | str, *, inclusive: bool = True) -> dict[int, int]:
        """Return for each partition the last number of a moment, in the log's own time.

        Args:
            moment: a time (milliseconds), a position (``p07:1234``) or an event's id.
            inclusive: with what is at that very moment; without it, what came before.

        Raises:
            ConfigError: no moment of this history.
        """
        return Finder(self).places(moment, inclusive=inclusive)


LINEAGE = Query(types=("SessionStarted", "SessionSwitched", "Delegated"))
"""The events that tell where sessions came from."""
