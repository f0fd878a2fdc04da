"""Reads archive and log as one ordered sequence, of one partition or of all partitions."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from redis import Redis

from memorybus.archive.location import archive_of, check_reaches
from memorybus.archive.tombstones import RAISE_DAMAGE, DamageHandler
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveError
from memorybus.events import Delegated, Envelope, Omitted, Position, SessionStarted, SessionSwitched
from memorybus.history.backward import BackwardMark, BackwardReader
from memorybus.history.forward import Scan, merge_in_order
from memorybus.history.log_reader import EventPage
from memorybus.history.positions import PositionFinder
from memorybus.history.sources import Sources
from memorybus.lineage.graph import Identity, identity_of
from memorybus.log.entry import EntryMoment, LoggedEvent, Place, parse_entry_id, previous_entry_id
from memorybus.log.stream import START, EventLog, Head
from memorybus.query.filter import EventFilter
from memorybus.query.query import EVERYTHING, Query, row_of
from memorybus.query.ranges import WHOLE, Plan

if TYPE_CHECKING:
    from memorybus.archive.archive import Archive

_LINKING_REASONS = frozenset({"resume", "reset", "rewind"})
"""Reasons of switches whose event names an earlier session that is not the parent."""


def expand_lineages(query: Query, envelopes: Iterable[Envelope]) -> Query:
    """Return a query that names sessions instead of lineages."""
    children: defaultdict[Identity, set[Identity]] = defaultdict(set)
    ours = Query(agents=query.agents, users=query.users, workspaces=query.workspaces)
    for envelope in (one for one in envelopes if ours.wants(row_of(one))):
        identity = identity_of(envelope.scope, "")
        for parent, child in _edges(envelope):
            children[identity.with_session(parent)].add(identity.with_session(child))
    roots = [one for one in children if one.session in query.lineages]
    found = {one.session for one in closure(roots, children)}
    sessions = tuple(sorted({*query.sessions, *query.lineages, *found}))
    return msgspec.structs.replace(query, lineages=(), sessions=sessions)


def closure(
    roots: Iterable[Identity], children: Mapping[Identity, Iterable[Identity]]
) -> set[Identity]:
    """Return some sessions and all their descendants; a cycle is walked once."""
    identities: set[Identity] = set()
    todo = list(roots)
    while todo:
        session = todo.pop()
        if session not in identities:
            identities.add(session)
            todo.extend(children.get(session, ()))
    return identities


def _edges(envelope: Envelope) -> Iterable[tuple[str, str]]:
    event, ref = envelope.event, envelope.session
    if isinstance(event, Delegated):
        yield ref.id, event.child_session
        return
    if ref.parent:
        yield ref.parent, ref.id
    if isinstance(event, SessionStarted | SessionSwitched) and event.reason not in _LINKING_REASONS:
        yield event.parent, ref.id


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """The places where an event is."""

    in_log: bool  # whether the log still has it
    sealed: bool  # whether the archive has it, too, according to Redis
    # the archive's file that has it; "" if none has it, or the archive cannot be read
    segment: str = ""


def find_whereabouts(sources: Sources, position: Position) -> Whereabouts:
    partition, entry = position.partition, position.entry
    sealed = sources.reader.sealed_number(partition) >= position.n
    in_log = sources.log.has_entry(partition, entry)
    segment = _segment(sources, partition, entry) if sealed else ""
    return Whereabouts(in_log=in_log, sealed=sealed, segment=segment)


def _segment(sources: Sources, partition: int, entry: str) -> str:
    try:
        archive = sources.archive()
        return archive.segment_of(partition, entry) if archive else ""
    except ArchiveError:
        return ""


LINEAGE = Query(types=("SessionStarted", "SessionSwitched", "Delegated"))
"""The events that say from which session another one came."""

_NO_END = (1 << 63, 0)


class History:
    """Reads the whole past. Use from one thread; reading changes nothing (G5).

    A gap in the dense numbers `n` means that events are missing. The archive is opened when it is
    first needed. Its damage raises `ArchiveDamaged`; events behind the damage are not read.
    """

    def __init__(
        self,
        log: EventLog,
        archive: "Archive | None" = None,
        find: "Callable[[], Archive | None] | None" = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.log = log  # the end of the history
        self._sources = Sources(log, archive, find, clock)
        self._reader = self._sources.reader
        self._known_sealed: dict[int, int] = {}
        self._log_from: dict[int, EntryMoment] = {}
        self._set_back: dict[int, int] = {}

    @classmethod
    def from_settings(cls, redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> "History":
        log = EventLog(redis, settings, clock)
        return cls(log, find=lambda: archive_of(redis, settings, clock), clock=clock)

    def refresh(self) -> None:
        """Forget how far the archive reached: it may reach further, though the log has no news.

        If Redis came back as an older copy, a worker finds this out later than a lane that waits.
        """
        self._known_sealed.clear()
        self._log_from.clear()

    def close(self) -> None:
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
        """Return up to `count` events after an entry; `Omitted` ones keep the numbers dense.

        If the log's next number does not follow `after_n`, the archive is read.
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
        self._log_from[partition] = parse_entry_id(first.entry) if first else _NO_END
        self._set_back[partition] = self._reader.set_back_upto(partition)
        older = self._read_older(partition, after, count, plan)
        if older:
            return EventPage(older, cut_short=True)
        missing = first.n - 1 if first and first.n > after_n else sealed
        check_reaches(self._sources.archive(), partition, min(sealed, missing))
        return page.upto_gap()

    def _continues(self, partition: int, after: str, after_n: int, page: EventPage) -> bool:
        """Whether a page follows a place; after the loss of a counter, numbers start again."""
        first = page.events[0].position.n if page.events else 0
        if first == after_n + 1:
            return True
        return 0 < first <= after_n and self.log.has_entry(partition, after)

    def _read_known_older(
        self, partition: int, after: str, count: int, plan: Plan
    ) -> list[LoggedEvent]:
        start = self._log_from.get(partition)
        if start is None or parse_entry_id(after) >= start:
            return []
        events = self._read_older(partition, after, count, plan)
        if not events:
            del self._log_from[partition]
        return events

    def _read_older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Return the archive's events after a place and before the log begins."""
        archive = self._sources.archive()
        if archive is None:
            return []
        events = archive.read(partition, after, count, plan)
        start, sealed = self._log_from[partition], self._known_sealed[partition]
        while events and (
            events[-1].position.n > sealed or parse_entry_id(events[-1].position.entry) >= start
        ):
            events.pop()
        return _mark_resent(events, self.set_back_upto(partition))

    def set_back_upto(self, partition: int) -> int:
        """Return up to which number `read` marks what it finds in the archive as sent before.

        Redis was set back to an older state, and had never given these numbers itself. So it does
        not know whether lanes applied those events. It is 0 if `read` did not need the archive yet.
        """
        return self._set_back.get(partition, 0)

    def _sealed_after(self, partition: int, after_n: int, page: EventPage) -> int:
        """Return the last sealed number that Redis knows if it is above `after_n`, else 0."""
        sealed = self._known_sealed.get(partition)
        if page.events or sealed is None:
            sealed = self._known_sealed[partition] = self._reader.sealed_number(partition)
        return sealed if sealed > after_n else 0

    # -- one partition, by place ------------------------------------------------------------------

    def has(self, partition: int, entry: str) -> bool:
        """Whether an entry is in the history. Ids consist of times and are never used again."""
        if self.log.has_entry(partition, entry):
            return True
        archive = self._sources.archive() if self._reader.sealed_number(partition) else None
        if archive is not None and archive.has(partition, entry):
            return True
        check_reaches(archive, partition, self._sealed_before(partition, entry))
        return False

    def event_at(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the event of an entry, or its placeholder (`OMITTED_ENVELOPES`); None for none."""
        event_filter = EventFilter(WHOLE, partition, self.forgotten_queries())
        events = self._reader.read(partition, previous_entry_id(entry), 1, event_filter).events
        if not events or events[0].position.entry != entry:
            archive = self._sources.archive() if self._reader.sealed_number(partition) else None
            events = archive.read(partition, previous_entry_id(entry), 1) if archive else []
        return events[0] if events and events[0].position.entry == entry else None

    def whereabouts(self, position: Position) -> Whereabouts:
        """Return whether the event at a position lies in the log, in the archive, or in both."""
        return find_whereabouts(self._sources, position)

    def last_before(self, partition: int, entry: str) -> Place | None:
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
        places = (place for place in (found, older) if place)
        return max(places, key=lambda place: parse_entry_id(place.entry), default=None)

    def _sealed_before(self, partition: int, entry: str) -> int:
        following = self._reader.first_place(partition, entry)
        sealed = self._reader.sealed_number(partition)
        return min(sealed, following.n - 1) if following else sealed

    def next_in_log(self, partition: int, entry: str) -> Place | None:
        return self._reader.first_place(partition, f"({entry}")

    # -- all partitions ---------------------------------------------------------------------------

    def scan(
        self,
        query: Query = EVERYTHING,
        since: int | None = None,
        until: int | None = None,
        *,
        plan: Plan | None = None,
        damage: DamageHandler = RAISE_DAMAGE,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events of all partitions in the order in which Redis took them.

        Memory does not grow with the history. Forgotten events are not shown; if the tombstones
        cannot be read (`ArchiveError`), none is. `since` and `until` are milliseconds.
        """
        wanted = Plan(query=self.resolve(query), spans=plan.spans if plan else {})
        scan = Scan(self._sources, wanted, since, until, damage)
        return merge_in_order([scan.partition(p) for p in range(self.log.partitions)])

    def scan_backward(
        self,
        query: Query = EVERYTHING,
        heads: Sequence[Head] | None = None,
        *,
        damage: DamageHandler = RAISE_DAMAGE,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events of all partitions, newest first, as far as the caller takes them.

        Lineages are resolved when the archive is first needed; until then events of every lineage
        come, and the caller has to choose. Tombstones count as in `scan`.
        """
        everywhere = msgspec.structs.replace(query, lineages=())
        back = BackwardReader(self._sources, everywhere, lambda: self.resolve(query), damage)
        events = back.events(self.log.heads() if heads is None else heads)
        return (event for event in events if type(event.envelope.event) is not Omitted)

    def read_backward(
        self,
        query: Query,
        before: BackwardMark | None = None,
        *,
        heads: Sequence[Head] | None = None,
        damage: DamageHandler = RAISE_DAMAGE,
    ) -> Iterator[LoggedEvent]:
        """Yield the events of all partitions, newest first; unwanted ones come as placeholders.

        So the caller knows how far it came, and can continue `before` that. The query may not name
        lineages. `heads` are the ends of the partitions that are read; if None, those of all.
        """
        back = BackwardReader(self._sources, query, lambda: query, damage, before)
        return back.events(self.log.heads() if heads is None else heads)

    def forgotten_queries(self) -> tuple[Query, ...]:
        """Return the queries of the tombstones; from then on `read` honours them, too."""
        return self._sources.forgotten_queries()

    def resolve(self, query: Query) -> Query:
        """Return a query that names sessions instead of lineages, from the whole history.

        A session that began with a branch, a compression or a delegation came from its parent; one
        that was resumed or reset did not.
        """
        if not query.lineages:
            return query
        return expand_lineages(query, (event.envelope for event in self.scan(LINEAGE)))

    def place(self, partition: int, n: int) -> Place | None:
        return PositionFinder(self, self._sources).place(partition, n)

    def places(self, moment: int | str, *, inclusive: bool = True) -> dict[int, int]:
        """Return by partition the last number up to a moment, in the log's own time.

        A moment is milliseconds, a position (``p07:1234``) or an event's id; else `ConfigError`.
        """
        return PositionFinder(self, self._sources).places(moment, inclusive=inclusive)


def _mark_resent(events: list[LoggedEvent], upto: int) -> list[LoggedEvent]:
    """Mark the events up to a number as `resent`."""
    if not events or events[0].position.n > upto:
        return events
    return [
        msgspec.structs.replace(event, resent=event.resent or event.position.n <= upto)
        for event in events
    ]


def _last_sealed(archive: "Archive", partition: int, entry: str, upto: int) -> Place | None:
    """Return the place of the last sealed event before an entry, with a number up to `upto`.

    Events behind the last one that this log sealed may be another log's.
    """
    event = archive.last_before(partition, entry)
    if event is not None and event.position.n > upto:
        older = archive.read_backward(partition, event.position.entry)
        event = next((event for event in older if event.position.n <= upto), None)
    return Place(event.position.entry, event.position.n) if event else None
