"""Finds numbers that were assigned twice among unsealed events, and renumbers these events.

Numbers are assigned twice in three cases: Redis came back with fewer events than the archive has;
Redis lost a partition's counter, and events were published before anybody noticed; another Redis
has archived in the meantime. All events are still there, and only their numbers are wrong.
"""

from functools import partial
from typing import TypeVar

import msgspec
from redis import Redis

from memorybus.archive.agreement import ArchiveComparer
from memorybus.archive.archive import Archive
from memorybus.clock import Clock
from memorybus.errors import ArchiveTaken
from memorybus.log.entry import Place, entry_ms
from memorybus.log.inspection import read_numbers_behind
from memorybus.log.stream import START
from memorybus.redis import scripts
from memorybus.redis.cluster import group_by_shard
from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import ARCHIVE_LANE, Keys, lane_name
from memorybus.redis.server_time import read_server_ms

_T = TypeVar("_T")

TIMEOUT = 600.0
"""Seconds to wait for Redis while it renumbers: some ten thousand entries a second."""

_PAGE = 1_000
_OWNER_NAME = "archive-repair"
_LEASE_MS = round(TIMEOUT * 1000)

_LANE_WAIT_SECONDS, _RETRY_SECONDS = 5.0, 0.05
"""Seconds to wait for an archiver, which keeps its lane for a moment; seconds between tries."""


class RepeatedNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """A partition in which numbers were given twice.

    Attributes:
        partition: the partition.
        before: a number.
        after: the next number in the stream, or in the history; it is not greater.
        end: where the archive ends.
        known: the log's last entry that the archive has; all entries after it get new numbers.
        entries: how many entries get new numbers.
        sealed: the number up to which the partition is sealed, according to Redis.
    """

    partition: int
    before: int
    after: int
    end: Place
    known: str
    entries: int
    sealed: int


class Renumbering:
    """Finds events that the archive does not have and whose numbers repeat, and renumbers them.

    Every method raises `LogUnavailable` if Redis is away.
    """

    def __init__(self, redis: Redis, keys: Keys, archive: Archive, clock: Clock) -> None:
        """Use the log's Redis, and its archive."""
        self._clock = clock
        self._redis = redis
        self._keys = keys
        self._archive = archive
        self._comparing = ArchiveComparer(redis, keys, archive)

    def find(self, partition: int) -> RepeatedNumbers | None:
        """Return the repeated numbers after the entries that the archive has; None for none.

        Raises:
            ArchiveUnavailable, ArchiveDamaged: the archive cannot be read.
        """
        noted, end = (
            self._read_sealed_place(partition),
            self._archive.end(partition) or Place(START, 0),
        )
        found = self._comparing.compare(partition, noted, end)
        known = end.entry if found.lacking is None else found.upto
        entries, twice = self._find_repeat(partition, Place(known, end.n))
        if found.lacking is not None:
            twice = end.n, found.lacking.n
        if twice is None:
            return None
        return RepeatedNumbers(
            partition=partition,
            before=twice[0],
            after=twice[1],
            end=end,
            known=known,
            entries=entries,
            sealed=end.n if found.lacking is None else noted.n,
        )

    def _find_repeat(self, partition: int, place: Place) -> tuple[int, tuple[int, int] | None]:
        """Return how many entries follow a place, and the first two numbers that do not ascend."""
        key = self._keys.log(partition)
        read = partial(read_numbers_behind, self._redis, self._keys, partition)
        entries, done, twice = 0, False, None
        while not done:
            page = ask_redis(partial(read, place, _PAGE), key)
            place, done = page.upto, page.done
            entries += page.read - page.foreign
            twice = twice or next((pair for pair in page.breaks if pair[1] <= pair[0]), None)
        return entries, twice

    def _read_sealed_place(self, partition: int) -> Place:
        """Return the last sealed place that Redis knows."""
        n, entry = ask_redis(
            lambda: self._redis.hmget(self._keys.state(partition), ["sealed", "sealed_entry"]),
            self._keys.state(partition),
        )
        return Place(entry.decode() if entry else START, int(n or 0))

    def is_end_older_than_server(self, twice: RepeatedNumbers) -> bool:
        """Say whether all that the archive has was written before this server started.

        Then this Redis came back from an older copy. If the archive's end is younger, another
        Redis may archive into the same place, and both would renumber their events for ever.
        """
        key = self._keys.log(twice.partition)
        (shard,) = ask_redis(lambda: group_by_shard(self._redis, [key]), key)
        now_ms = ask_redis(lambda: read_server_ms(shard.redis), key)  # first: never too late
        uptime = int(ask_redis(lambda: shard.redis.info("server")["uptime_in_seconds"], key))
        started_ms: int = (now_ms // 1000 - uptime) * 1000
        return entry_ms(twice.end.entry) < started_ms

    def mend(self, twice: RepeatedNumbers) -> int:
        """Give new numbers to the entries that the archive lacks; return how many there are.

        The entries are added again at new places, in their order, with a mark. Lanes that have seen
        them treat them as entries that Redis had lost (G4). Everything that a lane had noted by
        number is deleted, and each lane has to be acquired anew. Meanwhile Redis answers no other
        client.

        Raises:
            ArchiveTaken: an archiver works on the partition, or has sealed meanwhile; call `find`
                again.
        """
        partition = twice.partition
        acquired = self._acquire_lane(partition)
        try:
            return self._renumber(twice)
        finally:
            lease = self._keys.lease(partition, ARCHIVE_LANE)
            lane = self._keys.lane(partition, ARCHIVE_LANE)
            self._run(scripts.release(lease, lane, f"{acquired.epoch}:{_OWNER_NAME}"))

    def _acquire_lane(self, partition: int) -> scripts.AcquiredLane:
        """Acquire the archiver's lane; an archiver holds it for a moment each time it looks."""
        until = self._clock.monotonic() + _LANE_WAIT_SECONDS
        while True:
            acquired = self._run(
                scripts.acquire(self._keys, partition, ARCHIVE_LANE, _OWNER_NAME, _LEASE_MS)
            )
            if acquired is not None:
                return acquired
            if self._clock.monotonic() >= until:
                raise _taken_error(partition, "an archiver is at work on it now; run this again")
            self._clock.sleep(_RETRY_SECONDS)

    def _renumber(self, twice: RepeatedNumbers) -> int:
        partition = twice.partition
        call = scripts.renumber(
            self._keys,
            partition,
            self._lanes(partition),
            known=twice.known,
            entry=twice.end.entry,
            n=twice.end.n,
            sealed=twice.sealed,
            back=self._place_before(twice),
        )
        moved = self._run(call)
        if isinstance(moved, scripts.OtherSealed):
            why = "Redis and the archive do not agree on what is sealed; run: memorybus archive run"
            raise _taken_error(twice.partition, f"{why}, and this again")
        return moved

    def _place_before(self, twice: RepeatedNumbers) -> tuple[str, int]:
        """Return the archive's last place before the first repeated number."""
        events = self._archive.read_backward(twice.partition, twice.end.entry)
        places = (event.position for event in events if event.position.n < twice.after)
        last = next(places, None)
        return (last.entry, last.n) if last else (START, twice.after - 1)

    def _lanes(self, partition: int) -> list[str]:
        """Return the keys of a partition's lanes; each lane has a consumer group on the log."""
        key = self._keys.log(partition)
        groups = ask_redis(lambda: self._redis.xinfo_groups(key), key)
        names = (group["name"].decode("utf-8", "surrogatepass") for group in groups)
        return [self._keys.lane(partition, name) for name in names if name != ARCHIVE_LANE]

    def _run(self, call: scripts.ScriptCall[_T]) -> _T:
        reply: _T = ask_redis(lambda: scripts.run(self._redis, call), call.keys[0])
        return reply


def _taken_error(partition: int, why: str) -> ArchiveTaken:
    return ArchiveTaken(f"partition {lane_name(partition)}: {why}")
