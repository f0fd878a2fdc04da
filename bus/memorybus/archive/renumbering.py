"""Numbers that were given twice: found in what is not sealed yet, and given anew.

Redis came back with less than the archive has, or lost a partition's counter, and events were
published before anybody could tell; or another Redis has archived in between. The events are all
there; only their numbers say nothing any more.
"""

from functools import partial
from typing import TypeVar

import msgspec
from redis import Redis

from memorybus.archive.agreement import Comparing
from memorybus.archive.archive import Archive
from memorybus.clock import Clock
from memorybus.errors import ArchiveTaken
from memorybus.log.entry import Place
from memorybus.log.inspection import read_numbers_behind
from memorybus.log.stream import START
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import ARCHIVE_LANE, Keys, lane_name

_T = TypeVar("_T")

TIMEOUT = 600.0
"""Seconds to wait for Redis while it renumbers: some ten thousand entries a second."""

_PAGE = 1_000
_WHO = "archive-repair"
_LEASE_MS = round(TIMEOUT * 1000)

_PATIENCE, _AGAIN = 5.0, 0.05
"""Seconds for which an archiver is waited for, which looks for a moment; between tries."""


class TwiceNumbered(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of which numbers were given twice.

    Attributes:
        partition: which.
        before: a number.
        after: the one that follows it in the stream, or in the history, which is not above it.
        end: where the archive ends.
        known: the log's last entry that the archive has; all behind it gets new numbers.
        entries: how many these are.
        sealed: the number up to which Redis knew the partition to be sealed.
    """

    partition: int
    before: int
    after: int
    end: Place
    known: str
    entries: int
    sealed: int


class Renumbering:
    """Looks at what the archive does not have, and numbers it anew.

    Every method raises `LogUnavailable` without Redis.
    """

    def __init__(self, redis: Redis, keys: Keys, archive: Archive, clock: Clock) -> None:
        """Use the log's Redis, and its archive."""
        self._clock = clock
        self._redis = redis
        self._keys = keys
        self._archive = archive
        self._comparing = Comparing(redis, keys, archive)

    def find(self, partition: int) -> TwiceNumbered | None:
        """Return what was given twice behind what the archive has; None if nothing was.

        Raises:
            ArchiveUnavailable, ArchiveDamaged: the archive cannot be asked.
        """
        noted, end = self._noted(partition), self._archive.end(partition) or Place(START, 0)
        found = self._comparing.compared(partition, noted, end)
        known = end.entry if found.lacking is None else found.upto
        entries, twice = self._read(partition, Place(known, end.n))
        if found.lacking is not None:
            twice = end.n, found.lacking.n
        if twice is None:
            return None
        return TwiceNumbered(
            partition=partition,
            before=twice[0],
            after=twice[1],
            end=end,
            known=known,
            entries=entries,
            sealed=end.n if found.lacking is None else noted.n,
        )

    def _read(self, partition: int, place: Place) -> tuple[int, tuple[int, int] | None]:
        """Return how many entries are behind a place, and the first number that is not above."""
        key = self._keys.log(partition)
        read = partial(read_numbers_behind, self._redis, self._keys, partition)
        entries, done, twice = 0, False, None
        while not done:
            page = ask_redis(partial(read, place, _PAGE), key)
            place, done = page.upto, page.done
            entries += page.read - page.foreign
            twice = twice or next((pair for pair in page.breaks if pair[1] <= pair[0]), None)
        return entries, twice

    def _noted(self, partition: int) -> Place:
        """Return what Redis knows to be sealed."""
        n, entry = ask_redis(
            lambda: self._redis.hmget(self._keys.state(partition), ["sealed", "sealed_entry"]),
            self._keys.state(partition),
        )
        return Place(entry.decode() if entry else START, int(n or 0))

    def mend(self, twice: TwiceNumbered) -> int:
        """Give what is behind the archive's end new numbers; return how many entries got one.

        They come again at new places, in their order, and marked: lanes that had them treat them as
        they do what Redis lost (G4). What lanes know of by number is forgotten, and they are taken
        anew. Redis answers nobody else meanwhile.

        Raises:
            ArchiveTaken: an archiver is at work on it, or has sealed meanwhile: look again.
        """
        partition = twice.partition
        held = self._held(partition)
        try:
            return self._moved(twice)
        finally:
            lease = self._keys.lease(partition, ARCHIVE_LANE)
            lane = self._keys.lane(partition, ARCHIVE_LANE)
            self._run(scripts.release(lease, lane, f"{held.epoch}:{_WHO}"))

    def _held(self, partition: int) -> scripts.AcquiredLane:
        """Take the archiver's lane, which it holds for a moment at each of its looks."""
        until = self._clock.monotonic() + _PATIENCE
        while True:
            held = self._run(scripts.acquire(self._keys, partition, ARCHIVE_LANE, _WHO, _LEASE_MS))
            if held is not None:
                return held
            if self._clock.monotonic() >= until:
                raise _taken(partition, "an archiver is at work on it now; run this again")
            self._clock.sleep(_AGAIN)

    def _moved(self, twice: TwiceNumbered) -> int:
        partition = twice.partition
        call = scripts.renumber(
            self._keys,
            partition,
            self._lanes(partition),
            known=twice.known,
            entry=twice.end.entry,
            n=twice.end.n,
            sealed=twice.sealed,
        )
        moved = self._run(call)
        if moved < 0:
            why = "Redis and the archive do not agree on what is sealed; run: memorybus archive run"
            raise _taken(twice.partition, f"{why}, and this again")
        return moved

    def _lanes(self, partition: int) -> list[str]:
        """Return a partition's lanes; each has a group on the log."""
        key = self._keys.log(partition)
        groups = ask_redis(lambda: self._redis.xinfo_groups(key), key)
        names = (group["name"].decode("utf-8", "surrogatepass") for group in groups)
        return [self._keys.lane(partition, name) for name in names if name != ARCHIVE_LANE]

    def _run(self, call: scripts.ScriptCall[_T]) -> _T:
        reply: _T = ask_redis(lambda: scripts.run(self._redis, call), call.keys[0])
        return reply


def _taken(partition: int, why: str) -> ArchiveTaken:
    return ArchiveTaken(f"partition {lane_name(partition)}: {why}")
