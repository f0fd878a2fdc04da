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
from memorybus.history.backward import Back, Mark
from memorybus.history.forward import Scan, in_order
from memorybus.history.lineages import descendants
from memorybus.history.log_reader import EventPage
from memorybus.history.positions import Finder
from memorybus.history.sources import SealedPast, Sources
from memorybus.history.whereabouts import Whereabouts, whereabouts
from memorybus.log.entry import LoggedEvent, Place, parse_entry_id, previous_entry_id
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
        archive: SealedPast | None = None,
        find: Callable[[], SealedPast | None] | None = None,
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
    def of(cls, redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "History":
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
        older = self._known_older(partition, after, count, plan)
        if older:
            return EventPage(older, cut_short=True)
        page = self._reader.read(partition, after, count, self._sources.passing(plan, partition))
        if self._goes_on(partition, after, after_n, page):
            return page.upto_a_hole()
        sealed = self._sealed_behind(partition, after_n, page)
        if not sealed:
            return page
        first = page.events[0].position if page.events else None
        self._log_from[partition] = parse_entry_id(first.entry) if first else _NO_END
        older = self._older(partition, after, count, plan)
        if older:
            return EventPage(older, cut_short=True)
        missing = first.n - 1 if first and first.n > after_n else sealed
        check_reaches(self._sources.archive(), partition, min(sealed, missing))
        return page.upto_a_hole()

    def _goes_on(self, partition: int, after: str, after_n: int, page: EventPage) -> bool:
        """Say whether a page is what follows a place; a counter that was lost numbers anew."""
        first = page.events[0].position.n if page.events else 0
        if first == after_n + 1:
            return True
        return 0 < first <= after_n and self.log.has_entry(partition, after)

    def _known_older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Read the archive at once where the log is known to begin later."""
        start = self._log_from.get(partition)
        if start is None or parse_entry_id(after) >= start:
            return []
        found = self._older(partition, after, count, plan)
        if not found:
            del self._log_from[partition]
        return found

    def _older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Return what the archive has after a place and before the log begins.

        Only what this log knows to be sealed: behind that another's events may stand there.
        """
        archive = self._sources.archive()
        if archive is None:
            return []
        found = archive.read(partition, after, count, plan)
        start, sealed = self._log_from[partition], self._known_sealed[partition]
        while found and (
            found[-1].position.n > sealed or parse_entry_id(found[-1].position.entry) >= start
        ):
            found.pop()
        return found

    def _sealed_behind(self, partition: int, after_n: int, page: EventPage) -> int:
        """Return up to which number events behind one were sealed, as Redis knows; 0 for none."""
        known = self._known_sealed.get(partition)
        if page.events or known is None:
            known = self._known_sealed[partition] = self._reader.sealed(partition)
        return known if known > after_n else 0

    # -- one partition, by place ------------------------------------------------------------------

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is in the history; ids are made of time and never come again."""
        if self.log.has_entry(partition, entry):
            return True
        archive = self._sources.archive() if self._reader.sealed(partition) else None
        if archive is not None and archive.has(partition, entry):
            return True
        check_reaches(archive, partition, self._sealed_before(partition, entry))
        return False

    def at(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the event of an entry, or its placeholder (`OMITTED`); None if there is none.

        What is forgotten is not shown, also if only the log has it: while nobody knows what that
        is, `ArchiveError` is raised.
        """
        sieve = EventFilter(WHOLE, partition, self.forgotten())
        found = self._reader.read(partition, previous_entry_id(entry), 1, sieve).events
        if not found or found[0].position.entry != entry:
            archive = self._sources.archive() if self._reader.sealed(partition) else None
            found = archive.read(partition, previous_entry_id(entry), 1) if archive else []
        return found[0] if found and found[0].position.entry == entry else None

    def whereabouts(self, position: Position) -> Whereabouts:
        """Return where an event of the history lies."""
        return whereabouts(self._sources, position)

    def before(self, partition: int, entry: str) -> Place | None:
        """Return the place of the last event before an entry, None if there is none."""
        if entry == START:
            return None
        found = self._reader.last(partition, f"({entry}")
        wanted = self._sealed_before(partition, entry)
        if wanted <= (found.n if found else 0):
            return found
        archive = self._sources.archive()
        older = _last_sealed(archive, partition, entry, wanted) if archive else None
        if older is None or older.n < wanted:
            check_reaches(archive, partition, wanted)
        known = (one for one in (found, older) if one)
        return max(known, key=lambda place: parse_entry_id(place.entry), default=None)

    def _sealed_before(self, partition: int, entry: str) -> int:
        """Return the last number that was sealed and may stand before an entry; 0 for none."""
        following = self._reader.first(partition, entry)
        sealed = self._reader.sealed(partition)
        return min(sealed, following.n - 1) if following else sealed

    def following(self, partition: int, entry: str) -> Place | None:
        """Return the place of the log's first event behind an entry, None if there is none."""
        return self._reader.first(partition, f"({entry}")

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
        of every lineage come, and the caller has to choose. Tombstones: as for `scan`.

        Args:
            query: which events.
            heads: the ends from which it reads back; the present ones if None.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        everywhere = msgspec.structs.replace(query, lineages=())
        back = Back(self._sources, everywhere, lambda: self.resolve(query), damage)
        events = back.events(self.log.heads() if heads is None else heads)
        return (event for event in events if type(event.envelope.event) is not Omitted)

    def back(
        self, query: Query, before: Mark | None = None, *, damage: list[str] | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield the events of all partitions, newest first, those not wanted as placeholders.

        So its caller knows how far it came, and can stop and go on later. Segments that hold
        nothing wanted are passed over. Tombstones: as for `scan`.

        Args:
            query: which events, without lineages.
            before: where an earlier reader stopped; None for the end.
            damage: if given, what of the archive cannot be read is told here, and the rest is read.
        """
        return Back(self._sources, query, lambda: query, damage, before).events(self.log.heads())

    def forgotten(self) -> tuple[Query, ...]:
        """Return what nobody shall read any more; from then on `read` knows it, too.

        Raises:
            ArchiveError: it is not known, so nothing may be shown.
        """
        return self._sources.forgotten()

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
        return Finder(self, self._sources).place(partition, n)

    def places(self, moment: int | str, *, inclusive: bool = True) -> dict[int, int]:
        """Return for each partition the last number of a moment, in the log's own time.

        Args:
            moment: a time (milliseconds), a position (``p07:1234``) or an event's id.
            inclusive: with what is at that very moment; without it, what came before.

        Raises:
            ConfigError: no moment of this history.
        """
        return Finder(self, self._sources).places(moment, inclusive=inclusive)


def _last_sealed(archive: SealedPast, partition: int, entry: str, upto: int) -> Place | None:
    """Return the place of the last sealed event before an entry, of those up to a number.

    Behind what this log knows to be sealed another's events may stand.
    """
    found = archive.before(partition, entry)
    if found is not None and found.position.n > upto:
        older = archive.back(partition, found.position.entry)
        found = next((event for event in older if event.position.n <= upto), None)
    return Place(found.position.entry, found.position.n) if found else None
