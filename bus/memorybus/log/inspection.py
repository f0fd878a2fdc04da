"""Reads the state of the log for `continuity` and `forecast`, in one round trip.

Reading changes nothing, and costs the same however long the log is; where the counts do not agree,
numbers are read one by one, a bounded number at each look.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey
from memorybus.log.continuity import Numbers, PartitionView, count_mismatch, unsealed_start
from memorybus.log.entry import Place
from memorybus.log.forecast import AGES_MS
from memorybus.redis import scripts
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys

SAMPLES = 5
"""Nodes of a stream that are weighed."""

PAGE = 1_000
PAGES = 10
"""Where counts do not agree, this many pages of so many entries of a partition are read."""


class PartitionSight(msgspec.Struct, frozen=True):
    """One partition at one moment.

    Attributes:
        view: what it holds.
        size: bytes of its stream.
        ids: event ids it remembers, of the running window.
        ids_size: bytes of those.
        now_ms: the server's wall time.
        numbers: the number of the first entry not older than each age asked for; None for none.
    """

    view: PartitionView
    size: int
    ids: int
    ids_size: int
    now_ms: int
    numbers: tuple[int | None, ...]


class LogInspector:
    """Reads what the partitions of the log are like. Belongs to one thread."""

    def __init__(self, redis: Redis, settings: Settings, ages: Sequence[int] = AGES_MS) -> None:
        """Use the log's Redis; look up the number at some `ages` (milliseconds)."""
        self._ages = tuple(ages)
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._partitions = range(settings.partitions)

    def read_partitions(
        self, settled: Mapping[int, Place] | None = None
    ) -> dict[int, PartitionSight]:
        """Return what each partition is like; one whose key is not ours is left out.

        Args:
            settled: places to look before and behind, by partition.

        Raises:
            redis.RedisError: no answer.
        """
        places = settled or {}
        calls = [self._call(partition, places.get(partition)) for partition in self._partitions]
        replies = scripts.run_many(self._redis, calls)
        return {
            partition: _read_sight(reply)
            for partition, reply in zip(self._partitions, replies, strict=True)
            if not _is_foreign(reply)
        }

    def numbers(self, sights: Mapping[int, PartitionSight]) -> dict[int, Numbers]:
        """Read the numbers of the partitions whose counts do not agree, from what is not sealed on.

        Raises:
            redis.RedisError: no answer.
        """
        return {
            p: self._numbers(p, one.view) for p, one in sights.items() if count_mismatch(one.view)
        }

    def _numbers(self, partition: int, view: PartitionView) -> Numbers:
        read = partial(read_numbers_behind, self._redis, self._keys, partition)
        found = read(unsealed_start(view), PAGE)
        while not found.done and found.read < PAGE * PAGES:
            found = found.join(read(found.upto, PAGE))
        return found

    def _call(self, partition: int, settled: Place | None) -> scripts.ScriptCall[Sequence[Any]]:
        entry = settled.entry if settled else ""
        return scripts.look_at_partition(self._keys, partition, entry, SAMPLES, self._ages)


def read_numbers_behind(
    redis: Redis, keys: Keys, partition: int, after: Place, count: int
) -> Numbers:
    """Return what the numbers of up to `count` entries behind a place say.

    Args:
        redis: the log's Redis.
        keys: the namespace.
        partition: which.
        after: an entry, exclusive, and the number there.
        count: at most so many.

    Raises:
        redis.RedisError: no answer.
    """
    page = scripts.run(redis, scripts.read_numbers(keys, partition, after.entry, after.n, count))
    upto = Place(page.entry, page.n)
    return Numbers(upto, page.read < count, page.read, page.strays, page.breaks)


def _is_foreign(reply: Any) -> bool:
    """Say whether a partition's key is not ours.

    Raises:
        redis.RedisError: the server refused for another reason.
    """
    if not isinstance(reply, Exception):
        return False
    if isinstance(translate_redis_error(reply, ""), ForeignKey):
        return True
    raise reply


def _read_sight(reply: Any) -> PartitionSight:
    length, n, sealed, size, ids, ids_size, first, last, before, after, *rest = reply
    now, ages, sealed_at, unsealed = rest
    view = PartitionView(
        length=int(length),
        n=_number(n),
        sealed=_number(sealed),
        first=_place(first),
        last=_place(last),
        before=_place(before),
        after=_place(after),
        sealed_at=sealed_at.decode(),
        unsealed=_place(unsealed),
    )
    numbers = tuple(place.n if place else None for place in map(_place, ages))
    return PartitionSight(view, int(size), int(ids), int(ids_size), int(now), numbers)


def _place(reply: Sequence[bytes]) -> Place | None:
    return Place(reply[0].decode(), int(reply[1])) if reply else None


def _number(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0
