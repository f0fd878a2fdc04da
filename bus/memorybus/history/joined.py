"""A partition's archive and log, joined without a gap and without an overlap.

The log is the end of the history, the archive its beginning; where they overlap they hold the same,
and the log is read. What is read is continuous by the dense numbers `n`; a hole comes as a number
that does not follow, and whoever reads sees it. Reading changes nothing (G5).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from memorybus.archive.format.manifest import Place
from memorybus.archive.location import check_reaches
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM, Clock
from memorybus.history.forgotten import Forgotten
from memorybus.history.log_part import LogPart, Page, is_stray
from memorybus.log.entry import LoggedEvent, moment
from memorybus.log.stream import START, EventLog
from memorybus.query.filter import EventFilter
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, Plan

END = f"{(1 << 64) - 1}-{(1 << 64) - 1}"
"""The id behind every entry."""

_NO_END = (1 << 63, 0)

Moment = tuple[int, int]
"""An entry's milliseconds and its number within them: the order of entries."""


class Sealed(Protocol):
    """What the history needs of the archive (`memorybus.archive.archive.Archive`)."""

    @property
    def where(self) -> str:
        """Where it is."""
        ...

    def read(self, partition: int, after: str, count: int, plan: Plan = WHOLE) -> list[LoggedEvent]:
        """Return up to `count` events after a place."""
        ...

    def scan(
        self,
        partition: int,
        plan: Plan = WHOLE,
        *,
        after: str = START,
        since: int | None = None,
        until: int | None = None,
        damage: list[str] | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted events."""
        ...

    def back(
        self, partition: int, before: str, plan: Plan = WHOLE, damage: list[str] | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield what is before a place, newest first."""
        ...

    def tombstones(self) -> Sequence[Tombstone]:
        """Return what nobody shall read any more."""
        ...

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is sealed."""
        ...

    def before(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the last event before a place."""
        ...

    def end(self, partition: int) -> Place | None:
        """Return the last place that is sealed."""
        ...

    def close(self) -> None:
        """Close files."""
        ...


class Joined:
    """Reads partitions, each by itself. Use from one thread.

    The archive is opened when it is first needed: an event that the log still has costs one round
    trip to Redis and nothing else. Every method raises `LogUnavailable` without Redis, `ForeignKey`
    if a partition's key is not ours, and where the archive is needed `ArchiveUnavailable` without
    it, and `ArchiveDamaged`, which names the damage: nothing behind it is read as if it followed.

    Attributes:
        log: the end of it.
        part: the same, read under a plan.
        cut_short: whether the last page ended before the log did: there is more behind it.
    """

    def __init__(
        self,
        log: EventLog,
        archive: Sealed | None = None,
        find: Callable[[], Sealed | None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """Join them.

        Args:
            log: the log.
            archive: what was sealed of it.
            find: opens the archive when it is needed, in place of `archive`.
            clock: how old tombstones known here may be.
        """
        self.log = log
        self.cut_short = False
        self.part = LogPart(log.redis, log.keys)
        self._archive = archive
        self._find = find
        self._forgotten = Forgotten(clock)
        self._known_sealed: dict[int, int] = {}
        self._log_from: dict[int, Moment] = {}

    # -- one partition ----------------------------------------------------------------------------

    def read(
        self,
        partition: int,
        after: str = START,
        count: int = 500,
        *,
        after_n: int = 0,
        plan: Plan = WHOLE,
    ) -> list[LoggedEvent]:
        """Return up to `count` events after a place, in order.

        What the plan does not take comes as an `Omitted`, so that numbers stay dense. Fewer than
        `count` need not be the end; none are.

        Args:
            partition: which one.
            after: entry id, exclusive.
            count: at most so many.
            after_n: the dense number at `after`; one that does not follow it has the archive asked.
            plan: what is taken.
        """
        older = self._known_older(partition, after, count, plan)
        self.cut_short = bool(older)
        if older:
            return older
        sieve = self._sieve(plan, partition)
        page = self.part.read(partition, after, count, after_n, sieve)
        if self._goes_on(partition, after, after_n, page):
            return self._before_a_hole(page, after_n)
        sealed = self._sealed_behind(partition, after_n, page.events)
        if not sealed:
            return page.events
        start = moment(page.events[0].position.entry) if page.events else _NO_END
        self._log_from[partition] = start
        older = self._older(partition, after, count, plan)
        self.cut_short = bool(older)
        if not older:
            missing = page.first - 1 if page.first > after_n else sealed
            check_reaches(self._archive, partition, min(sealed, missing))
        return older or self._before_a_hole(page, after_n)

    def _before_a_hole(self, page: Page, after_n: int) -> list[LoggedEvent]:
        found = page.leading(after_n)
        self.cut_short = len(found) < len(page.events)
        return found

    def _goes_on(self, partition: int, after: str, after_n: int, page: Page) -> bool:
        """Say whether a page is what follows a place, or strangers' entries and then that.

        Where one stands at a seam only the archive tells whether more of them stood there.
        """
        if page.numbers and page.numbers[0] == after_n + 1:
            return True
        return 0 < page.first <= after_n + 1 and self.log.has(partition, after)

    def _known_older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Read the archive at once where the log is known to begin later."""
        start = self._log_from.get(partition)
        if start is None or moment(after) >= start:
            return []
        found = self._older(partition, after, count, plan)
        if not found:
            del self._log_from[partition]
        return found

    def _older(self, partition: int, after: str, count: int, plan: Plan) -> list[LoggedEvent]:
        """Return what the archive has after a place and before the log begins.

        Only what this log knows to be sealed: behind that another's events may stand there.
        """
        archive = self.opened()
        if archive is None:
            return []
        found = archive.read(partition, after, count, plan)
        start, sealed = self._log_from[partition], self._known_sealed[partition]
        while found and (
            found[-1].position.n > sealed or moment(found[-1].position.entry) >= start
        ):
            found.pop()
        return found

    def _sealed_behind(self, partition: int, after_n: int, found: list[LoggedEvent]) -> int:
        """Return up to which number events behind one were sealed, as Redis knows; 0 for none."""
        known = self._known_sealed.get(partition)
        if found or known is None:
            known = self._known_sealed[partition] = self.part.sealed(partition)
        return known if known > after_n else 0

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is in the history; ids are made of time and never come again."""
        if self.log.has(partition, entry):
            return True
        archive = self.opened() if self.part.sealed(partition) else None
        if archive is not None and archive.has(partition, entry):
            return True
        check_reaches(archive, partition, self._sealed_before(partition, entry))
        return False

    def before(self, partition: int, entry: str) -> Place | None:
        """Return the place of the last event of ours before an entry, None if there is none.

        Strangers' entries, which have no number of their own, are passed over.
        """
        if entry == START:
            return None
        found = self.part.last(partition, f"({entry}")
        wanted = self._sealed_before(partition, entry)
        if wanted <= (found.n if found else 0):
            return found
        archive = self.opened()
        older = _last_own(archive, partition, entry, wanted) if archive else None
        if older is None or older.n < wanted:
            check_reaches(archive, partition, wanted)
        return max((one for one in (found, older) if one), key=_moment, default=None)

    def _sealed_before(self, partition: int, entry: str) -> int:
        """Return the last number that was sealed and may stand before an entry; 0 for none."""
        following = self.part.first(partition, entry)
        sealed = self.part.sealed(partition)
        return min(sealed, following.n - 1) if following else sealed

    def end(self, partition: int) -> str:
        """Return the id of a partition's last entry, "0-0" if it has none."""
        last = self.before(partition, END)
        return max(self.log.end(partition), last.entry if last else START, key=moment)

    # -- the archive ------------------------------------------------------------------------------

    def opened(self) -> Sealed | None:
        """Return the archive; None if the log is not born."""
        if self._archive is None and self._find is not None:
            self._archive = self._find()
        return self._archive

    def forgotten(self) -> tuple[Query, ...]:
        """Return what nobody shall read any more, for whoever shows text.

        Raises:
            ArchiveError: it is not known, so nothing may be shown.
        """
        archive = self.opened()
        return self._forgotten.sure(archive) if archive else ()

    def close(self) -> None:
        """Close what is open of the archive."""
        if self._archive is not None:
            self._archive.close()

    def _sieve(self, plan: Plan, partition: int) -> EventFilter:
        """Return what passes.

        Tombstones are honoured where the archive is open, those last known while it is away. A
        live lane that needs nothing of it does not ask for them: an event that is still in the log
        is on its way to every provider.
        """
        known = self._forgotten.known(self._archive) if self._archive else ()
        return EventFilter(plan, partition, known)


def _last_own(archive: Sealed, partition: int, entry: str, upto: int) -> Place | None:
    """Return the place of the last sealed event before an entry, of those up to a number.

    Behind what this log knows to be sealed another's events may stand.
    """
    found = archive.before(partition, entry)
    if found is not None and (is_stray(found) or found.position.n > upto):
        older = archive.back(partition, found.position.entry)
        found = next((e for e in older if not is_stray(e) and e.position.n <= upto), None)
    return Place(found.position.entry, found.position.n) if found else None


def _moment(place: Place) -> Moment:
    return moment(place.entry)
