"""Reads the state of the log for `continuity` and the archiver, in one round trip.

Reading changes nothing, and costs the same however long the log is. Where the counts do not agree,
the numbers are read one by one, at most `PAGE` times `PAGES` of them.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey
from memorybus.log.continuity import (
    Numbers,
    PartitionView,
    count_mismatch,
    set_back_numbers,
    unsealed_start,
)
from memorybus.log.entry import Place
from memorybus.redis import scripts
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import NumberedEntry, PartitionLook

SAMPLES = 5
"""How many nodes of a stream Redis samples to estimate its size."""

PAGE = 1_000
PAGES = 10
"""If the counts do not agree, at most this many pages of `PAGE` entries of a partition are read."""


class PartitionState(msgspec.Struct, frozen=True):
    """One partition at one moment.

    Attributes:
        view: its entries, and the numbers that were given and sealed.
        size: bytes of its stream.
        now_ms: the server's wall time.
        numbers: the number of the first entry not older than each age asked for; None for none.
    """

    view: PartitionView
    size: int
    now_ms: int
    numbers: tuple[int | None, ...]


class LogInspector:
    """Reads the state of the log's partitions. Belongs to one thread."""

    def __init__(self, redis: Redis, settings: Settings, ages: Sequence[int] = ()) -> None:
        self._ages = tuple(ages)
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._partitions = range(settings.partitions)

    def read_partitions(
        self, settled: Mapping[int, Place] | None = None
    ) -> dict[int, PartitionState]:
        """Return the state of each partition; one whose key is not ours is left out.

        Args:
            settled: by partition, a place whose neighbours are read, too (`before`, `after`).

        Raises:
            redis.RedisError: no answer.
        """
        places = settled or {}
        calls = [self._call(partition, places.get(partition)) for partition in self._partitions]
        replies = scripts.run_many(self._redis, calls)
        states = {}
        for partition, reply in zip(self._partitions, replies, strict=True):
            if isinstance(reply, Exception):
                _pass_over_foreign(reply)
            else:
                states[partition] = _state_of(reply)
        return states

    def numbers(self, states: Mapping[int, PartitionState]) -> dict[int, Numbers]:
        """Read the unsealed numbers of the partitions whose counts do not agree.

        Raises:
            redis.RedisError: no answer.
        """
        return {
            p: self._numbers(p, one.view) for p, one in states.items() if count_mismatch(one.view)
        }

    def _numbers(self, partition: int, view: PartitionView) -> Numbers:
        read = partial(read_numbers_behind, self._redis, self._keys, partition)
        found = read(unsealed_start(view), PAGE)
        while not found.done and found.read < PAGE * PAGES:
            found = found.join(read(found.upto, PAGE))
        return found

    def _call(self, partition: int, settled: Place | None) -> scripts.ScriptCall[PartitionLook]:
        entry = settled.entry if settled else ""
        return scripts.look_at_partition(self._keys, partition, entry, SAMPLES, self._ages)


def read_numbers_behind(
    redis: Redis, keys: Keys, partition: int, after: Place, count: int
) -> Numbers:
    """Read the numbers of up to `count` entries behind a place.

    Args:
        after: an entry, exclusive, and its number.
        count: the most entries that are read.

    Raises:
        redis.RedisError: no answer.
    """
    page = scripts.run(redis, scripts.read_numbers(keys, partition, after.entry, after.n, count))
    upto = Place(page.entry, page.n)
    return Numbers(upto, page.read < count, page.read, page.foreign, page.breaks)


def _pass_over_foreign(error: Exception) -> None:
    """Raise the error of a partition, unless it says that the partition's key is not ours."""
    if not isinstance(translate_redis_error(error, ""), ForeignKey):
        raise error


def _state_of(look: PartitionLook) -> PartitionState:
    view = PartitionView(
        length=look.length,
        n=look.n,
        sealed=look.sealed,
        first=_place(look.first),
        last=_place(look.last),
        before=_place(look.before),
        after=_place(look.after),
        sealed_at=look.sealed_entry,
        unsealed=_place(look.unsealed),
        set_back=set_back_numbers(look.set_back),
    )
    numbers = tuple(found.n if found else None for found in look.at_ages)
    return PartitionState(view, look.size, look.now_ms, numbers)


def _place(found: NumberedEntry | None) -> Place | None:
    return Place(found.entry, found.n) if found else None
