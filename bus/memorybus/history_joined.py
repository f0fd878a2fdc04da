"""A partition's archive and log, joined without a gap and without an overlap.

The log is the end of the history, the archive its beginning; where they overlap they hold the same,
and the log is read. What is read is continuous by the dense numbers `n`; a hole comes as a number
that does not follow, and whoever reads sees it. Reading changes nothing (G5).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from memorybus.clock import SYSTEM, Clock
from memorybus.errors import ArchiveUnavailable
from memorybus.history_log import LogPart
from memorybus.keys import lane_name
from memorybus.log import START, EventLog
from memorybus.logged import LoggedEvent, moment
from memorybus.manifest import Place
from memorybus.plan import WHOLE, Plan
from memorybus.query import Query
from memorybus.sieve import Sieve
from memorybus.tombstones import Tombstone

TOMBSTONE_AGE = 5.0
"""Seconds after which is looked for new tombstones."""

_NO_END = (1 << 63, 0)

Moment = tuple[int, int]
"""An entry's milliseconds and its number within them: the order of entries."""


class Sealed(Protocol):
    """What the history needs of the archive (`memorybus.archive.Archive`)."""

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
        sealed_page: whether the last page came from the archive, so that there is more behind it.
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
        self.sealed_page = False
        self._part = LogPart(log.redis, log.keys)
        self._archive = archive
        self._find = find
        self._clock = clock
        self._forgotten: tuple[Query, ...] = ()
        self._looked_at = float("-inf")
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
        self.sealed_page = bool(older)
        if older:
            return older
        sieve = self._sieve(plan, partition)
        page = self._part.read(partition, after, count, after_n, sieve)
        if page.first_n == after_n + 1 or not self._may_be_sealed(partition, after_n, page.events):
            return page.events
        start = moment(page.events[0].position.entry) if page.events else _NO_END
        self._log_from[partition] = start
        older = self._older(partition, after, count, plan)
        self.sealed_page = bool(older)
        if not older:
            self._check_end(partition, after_n)
        return older or page.events

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
        """Return what the archive has after a place and before the log begins."""
        archive = self._opened()
        if archive is None:
            return []
        found = archive.read(partition, after, count, plan)
        start = self._log_from[partition]
        while found and moment(found[-1].position.entry) >= start:
            found.pop()
        return found

    def _may_be_sealed(self, partition: int, after_n: int, found: list[LoggedEvent]) -> bool:
        """Say whether Redis knows of sealed events behind a number."""
        known = self._known_sealed.get(partition)
        if found or known is None:
            known = self._known_sealed[partition] = self._part.sealed(partition)
        return known > after_n

    def _check_end(self, partition: int, after_n: int) -> None:
        """The log does not go on behind a number, and the archive neither: is it the right one?

        Raises:
            ArchiveUnavailable: it does not have what was sealed.
        """
        archive, sealed = self._opened(), self._known_sealed[partition]
        end = archive.end(partition) if archive else None
        if end is None or end.n <= after_n:
            raise ArchiveUnavailable(
                f"partition {lane_name(partition)}: events {after_n + 1} to {sealed} were sealed "
                f"and trimmed, and the archive here ends at {end.n if end else 0}; set `archive` "
                f"to the place that has them (see: memorybus archive ls)"
            )

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is in the history; ids are made of time and never come again."""
        if self.log.has(partition, entry):
            return True
        archive = self.sealed(partition)
        return archive is not None and archive.has(partition, entry)

    def before(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the last event before a place, None if there is none."""
        found = self.log.before(partition, entry)
        if found is not None:
            return found
        archive = self.sealed(partition)
        return archive.before(partition, entry) if archive else None

    def end(self, partition: int) -> str:
        """Return the id of a partition's last entry, "0-0" if it has none."""
        entry = self.log.end(partition)
        archive = self.sealed(partition) if entry == START else None
        place = archive.end(partition) if archive else None
        return place.entry if place else entry

    # -- the archive ------------------------------------------------------------------------------

    def sealed(self, partition: int) -> Sealed | None:
        """Return the archive if it has anything of a partition."""
        return self._opened() if self._part.sealed(partition) else None

    def check_reaches(self, partition: int, upto: int | None) -> None:
        """Make sure that the archive has what was sealed, up to a number if one is given.

        Raises:
            ArchiveUnavailable: it ends before.
        """
        sealed = self._part.sealed(partition)
        wanted = sealed if upto is None else min(sealed, upto)
        archive = self._opened()
        end = archive.end(partition) if archive else None
        held = end.n if end else 0
        if held < wanted:
            raise ArchiveUnavailable(
                f"partition {lane_name(partition)}: events up to {wanted} were sealed, and the "
                f"archive here ends at {held}; set `archive` to the place that has them, or "
                f"restore its newest manifest (see: memorybus archive verify)"
            )

    def close(self) -> None:
        """Close what is open of the archive."""
        if self._archive is not None:
            self._archive.close()

    def _opened(self) -> Sealed | None:
        if self._archive is None and self._find is not None:
            self._archive = self._find()
        return self._archive

    def _sieve(self, plan: Plan, partition: int) -> Sieve:
        """Return what passes.

        Tombstones are honoured where the archive is open. A live lane that needs nothing of it does
        not ask for them: an event that is still in the log is on its way to every provider.
        """
        if self._archive is not None and self._clock.monotonic() - self._looked_at >= TOMBSTONE_AGE:
            self._forgotten = tuple(one.query for one in self._archive.tombstones())
            self._looked_at = self._clock.monotonic()
        return Sieve(plan, partition, self._forgotten)
