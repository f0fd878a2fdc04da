"""History: archive and log read as one ordered sequence, by partition and over all of them.

The log is the end of the history, the archive its beginning; where they overlap they hold the same,
and the log is read. Live lanes, replays, rebuilds and the commands that show the past read here.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec
from redis import Redis

from memorybus.archive.location import archive_of, check_reaches
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.events import Omitted, Position
from memorybus.history.backward import BackwardMark, BackwardReader
from memorybus.history.forward import Scan, merge_in_order
from memorybus.history.lineages import expand_lineages
from memorybus.history.log_reader import EventPage
from memorybus.history.positions import PositionFinder
from memorybus.history.sources import ReadableArchive, Sources
from memorybus.history.whereabouts import Whereabouts, find_whereabouts
from memorybus.log.entry import LoggedEvent, Place, moment, previous
from memorybus.log.stream import START, EventLog, Head
from memorybus.query.filter import EventFilter
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan

LINEAGE = Query(types=("SessionStarted", "SessionSwitched", "Delegated"))
"""The events that tell where sessions came from."""

_NO_END = (1 << 63, 0)

Moment = tuple[int, int]
"""An entry's milliseconds and its number within them: the order of entries."""


class History:
    """Reads the whole past. Use from one thread; reading changes nothing (G5).

    What is read is continuous by the dense numbers `n`; where events are missing, the next number
    does not follow. The archive is opened when it is first needed: an event that the log still has
    costs one round trip to Redis and nothing else. Every method raises `LogUnavailable` without
    Redis, `ForeignKey` if a partition's key is not ours, and where the archive is needed
    `ArchiveUnavailable` without it, and `ArchiveDamaged`, which names the damage: nothing behind it
    is read as if it followed.

    Attributes:
        log: the end of it.
    """

    def __init__(
        self,
        log: EventLog,
        archive: ReadableArchive | None = None,
        find: Callable[[], ReadableArchive | None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """Join the two.

        Args:
            log: the log.
            archive: what was sealed of it.
            find: opens the archive when it is needed, in place of `archive`.
            clock: tells how old the known tombstones are.
        """
        self.log = log
        self._sources = Sources(log, archive, find, clock)
        self._reader = self._sources.reader
        self._known_sealed: dict[int, int] = {}
        self._log_from: dict[int, Moment] = {}

    @classmethod
    def from_settings(cls, redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "History":
        """Return the history that the settings name; no I/O yet."""
        log = EventLog(redis, settings, clock)
        return cls(log, find=lambda: archive_of(redis, settings, clock), clock=clock)

    def close(self) -> None:
        """Close what is open of the archive."""
        self._sources.close()

    # -- one partition, page by page --------------------------------------------------------------

    def read(
        self,
        partition: int,
        after: str = START,
        count: int = 500,
        *,
        after_n: int = 0,
        plan: Plan = WHOLE,
    ) -> EventPage:
        """Return up to `count` events after a place, in order; none at the end.

        What the plan does not take comes as an `Omitted`, so that numbers stay dense.

        Args:
            partition: which one.
            after: entry id, exclusive.
            count: at most so many.
            after_n: the dense number at `after`; one that does not follow it has the archive asked.
            plan: what is taken.
        """
        older = self._read_known_older(partition, after, count, plan)
        if older:
            return EventPage(older, cut_short=True)
        page = self._reader.read(
            partition, after, count, self._sources.build_filter(plan, partition)
        )
        if self._continues(partition, after, after_n, page):
            return page.upto_gap()
        sealed = self._sealed_after(partition, after_n, page)
        if not sealed:
            return page
        first = page.events[0].position if page.events else None
        self._log_from[partition] = moment(first.entry) if first else _NO_END
        older = self._read_older(partition, after, count, plan)
        if older:
            return EventPage(older, cut_short=True)
        missing = first.n - 1 if first and first.n > after_n else sealed
        check_reaches(self._sources.archive(), partition, min(sealed, missing))
        return page.upto_gap()

    def _continues(self, partition: int, after: str, after_n: int, page: EventPage) -> bool:
        """Say whether a page is what follows a place; a counter that was lost numbers anew."""
        first = page.events[0].position.n if page.events else 0
        if first == after_n + 1:
            return True
        return 0 < first <= after_n and self.log.has(partition, after)

    def _read_known_older(
        self, partition: int, after: str, count: int, plan: Plan
    ) -> list[LoggedEvent]:
        """Read the archive at once where the log is known to begin later."""
        start = self._log_from.get(partition)
        if start is None or moment(after) >= start:
            return []
        found = self._read_older(partition, after, count, plan)
        if not found:
            del self._log_from[partition]
        return found

    def _read_older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Return what the archive has after a place and before the log begins.

        Only what this log knows to be sealed: behind that another's events may stand there.
        """
        archive = self._sources.archive()
        if archive is None:
            return []
        found = archive.read(partition, after, count, plan)
        start, sealed = self._log_from[partition], self._known_sealed[partition]
        while found and (
            found[-1].position.n > sealed or moment(found[-1].position.entry) >= start
        ):
            found.pop()
        return found

    def _sealed_after(self, partition: int, after_n: int, page: EventPage) -> int:
        """Return up to which number events behind one were sealed, as Redis knows; 0 for none."""
        known = self._known_sealed.get(partition)
        if page.events or known is None:
            known = self._known_sealed[partition] = self._reader.sealed_number(partition)
        return known if known > after_n else 0

    # -- one partition, by place ------------------------------------------------------------------

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is in the history; ids are made of time and never come again."""
        if self.log.has(partition, entry):
            return True
        archive = self._sources.archive() if self._reader.sealed_number(partition) else None
        if archive is not None and archive.has(partition, entry):
            return True
        check_reaches(archive, partition, self._sealed_before(partition, entry))
        return False

    def event_at(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the event of an entry, or its placeholder (`OMITTED`); None if there is none.

        What is forgotten is not shown, also if only the log has it: while nobody knows what that
        is, `ArchiveError` is raised.
        """
        event_filter = EventFilter(WHOLE, partition, self.forgotten_queries())
        found = self._reader.read(partition, previous(entry), 1, event_filter).events
        if not found or found[0].position.entry != entry:
            archive = self._sources.archive() if self._reader.sealed_number(partition) else None
            found = archive.read(partition, previous(entry), 1) if archive else []
        return found[0] if found and found[0].position.entry == entry else None

    def whereabouts(self, position: Position) -> Whereabouts:
        """Return where an event of the history lies."""
        return find_whereabouts(self._sources, position)

    def last_before(self, partition: int, entry: str) -> Place | None:
        """Return the place of the last event before an entry, None if there is none."""
        if entry == START:
            return None
        found = self._reader.last_place(partition, f"({entry}")
        wanted = self._sealed_before(partition, entry)
        if wanted <= (found.n if found else 0):
            return found
        archive = self._sources.archive()
        older = _last_sealed(archive, partition, entry, wanted) if archive else None
        if older is None or older.n < wanted:
            check_reaches(archive, partition, wanted)
        known = (one for one in (found, older) if one)
        return max(known, key=lambda place: moment(place.entry), default=None)

    def _sealed_before(self, partition: int, entry: str) -> int:
        """Return the last number that was sealed and may stand before an entry; 0 for none."""
        following = self._reader.first_place(partition, entry)
        sealed = self._reader.sealed_number(partition)
        return min(sealed, following.n - 1) if following else sealed

    def next_in_log(self, partition: int, entry: str) -> Place | None:
        """Return the place of the log's first event behind an entry, None if there is none."""
        return self._reader.first_place(partition, f"({entry}")

    # -- all partitions ---------------------------------------------------------------------------

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
        scan = Scan(self._sources, wanted, since, until, damage)
        return merge_in_order([scan.partition(p) for p in range(self.log.partitions)])

    def scan_backward(
        self,
        query: Query = EVERYTHING,
        heads: Sequence[Head] | None = None,
        *,
        damage: list[str] | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events of all partitions, newest first: the reverse of `scan`.

        It reads back only as far as it is asked for events. Lineages are looked up, which reads
        their beginnings in the whole history, when the archive is first needed; until then events
        of every lineage come, and the caller has to choose. Tombstones: as for `scan`.

        Args:
            query: which events.
            heads: the ends from which it reads back; the present ones if None.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        everywhere = msgspec.structs.replace(query, lineages=())
        back = BackwardReader(self._sources, everywhere, lambda: self.resolve(query), damage)
        events = back.events(self.log.heads() if heads is None else heads)
        return (event for event in events if type(event.envelope.event) is not Omitted)

    def read_backward(
        self, query: Query, before: BackwardMark | None = None, *, damage: list[str] | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield the events of all partitions, newest first, those not wanted as placeholders.

        So its caller knows how far it came, and can stop and go on later. Segments that hold
        nothing wanted are passed over. Tombstones: as for `scan`.

        Args:
            query: which events, without lineages.
            before: where an earlier reader stopped; None for the end.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        return BackwardReader(self._sources, query, lambda: query, damage, before).events(
            self.log.heads()
        )

    def forgotten_queries(self) -> tuple[Query, ...]:
        """Return what nobody shall read any more; from then on `read` knows it, too.

        Raises:
            ArchiveError: it is not known, so nothing may be shown.
        """
        return self._sources.forgotten_queries()

    def resolve(self, query: Query) -> Query:
        """Return a query with its lineages as sessions: each named one, and all that came from it.

        A session that a branch, a compression or a delegation began came from its parent; one that
        was resumed or reset did not. Reads the beginnings and switches of the whole history.
        """
        if not query.lineages:
            return query
        return expand_lineages(query, (one.envelope for one in self.scan(LINEAGE)))

    def place(self, partition: int, n: int) -> Place | None:
        """Return the place of a dense number, or the last one before it; None if there is none."""
        return PositionFinder(self, self._sources).place(partition, n)

    def places(self, moment: int | str, *, inclusive: bool = True) -> dict[int, int]:
        """Return for each partition the last number of a moment, in the log's own time.

        Args:
            moment: a time (milliseconds), a position (``p07:1234``) or an event's id.
            inclusive: with what is at that very moment; without it, what came before.

        Raises:
            ConfigError: no moment of this history.
        """
        return PositionFinder(self, self._sources).places(moment, inclusive=inclusive)


def _last_sealed(archive: ReadableArchive, partition: int, entry: str, upto: int) -> Place | None:
    """Return the place of the last sealed event before an entry, of those up to a number.

    Behind what this log knows to be sealed another's events may stand.
    """
    found = archive.last_before(partition, entry)
    if found is not None and found.position.n > upto:
        older = archive.read_backward(partition, found.position.entry)
        found = next((event for event in older if event.position.n <= upto), None)
    return Place(found.position.entry, found.position.n) if found else None
