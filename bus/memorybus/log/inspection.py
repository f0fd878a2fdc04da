"""Reads the state of the log for `continuity` and the archiver, in one round trip."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import ScriptCall, ScriptRequest, run, run_many, script

SAMPLES = 5  # how many nodes of a stream Redis samples to estimate its size
PAGE = 1_000
PAGES = 10
"""If the counts do not agree, at most this many pages of `PAGE` entries of a partition are read."""


class PartitionState(msgspec.Struct, frozen=True):
    """One partition at one moment."""

    view: PartitionView  # its entries, and the numbers that were given and sealed
    size: int  # bytes of its stream
    now_ms: int  # the server's wall time
    # the number of the first entry not older than each age asked for; None for none
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
        """Return the state of each partition; one whose key is not ours is left out."""
        places = settled or {}
        calls = [self._call(partition, places.get(partition)) for partition in self._partitions]
        replies = run_many(self._redis, calls)
        states = {}
        for partition, reply in zip(self._partitions, replies, strict=True):
            if isinstance(reply, Exception):
                _pass_over_foreign(reply)
            else:
                states[partition] = reply
        return states

    def numbers(self, states: Mapping[int, PartitionState]) -> dict[int, Numbers]:
        return {
            p: self._numbers(p, state.view)
            for p, state in states.items()
            if count_mismatch(state.view)
        }

    def _numbers(self, partition: int, view: PartitionView) -> Numbers:
        numbers = self._read_page(partition, unsealed_start(view))
        while not numbers.done and numbers.read < PAGE * PAGES:
            numbers = numbers.join(self._read_page(partition, numbers.upto))
        return numbers

    def _read_page(self, partition: int, after: Place) -> Numbers:
        return run(self._redis, read_numbers(self._keys, partition, after, PAGE))

    def _call(self, partition: int, settled: Place | None) -> ScriptCall[PartitionState]:
        entry = settled.entry if settled else ""
        return look_at_partition(self._keys, partition, entry, SAMPLES, self._ages)


@script("server_time", "log_entries")
def look_at_partition(
    keys: Keys, partition: int, settled: str, samples: int, ages_ms: Sequence[int]
) -> ScriptRequest[PartitionState]:
    """Look at a partition at one moment; entries that are not ours are skipped."""
    where = (keys.log(partition), keys.state(partition))
    return ScriptRequest(where, (settled, samples, *ages_ms), _read_state)


def _read_state(reply: Any) -> PartitionState:
    length, n, sealed, size, *places, now, at_ages, sealed_at, unsealed, set_back = reply
    first, last, before, after = map(_read_place, places)
    view = PartitionView(
        length=int(length),
        n=_read_counter(n),
        sealed=_read_counter(sealed),
        first=first,
        last=last,
        before=before,
        after=after,
        sealed_at=sealed_at.decode(),
        unsealed=_read_place(unsealed),
        set_back=set_back_numbers(set_back.decode("ascii", "replace")),
    )
    numbers = tuple(place.n if place else None for place in map(_read_place, at_ages))
    return PartitionState(view, int(size), int(now), numbers)


def _read_place(reply: Sequence[bytes]) -> Place | None:
    return Place(reply[0].decode(), int(reply[1])) if reply else None


def _read_counter(raw: bytes) -> int:
    """Read a counter of the log's state; 0 if it is missing or not a number."""
    return int(raw) if raw.isdigit() else 0


@script("log_entries")
def read_numbers(keys: Keys, partition: int, after: Place, count: int) -> ScriptRequest[Numbers]:
    def read(reply: Any) -> Numbers:
        entry, n, length, foreign, numbers = reply
        breaks = zip(map(int, numbers[::2]), map(int, numbers[1::2]), strict=True)
        upto = Place(entry.decode(), int(n))
        return Numbers(upto, length < count, length, foreign, tuple(breaks))

    return ScriptRequest((keys.log(partition),), (after.entry, after.n, count), read)


def _pass_over_foreign(error: Exception) -> None:
    """Raise the error of a partition, unless it says that the partition's key is not ours."""
    if not isinstance(translate_redis_error(error, ""), ForeignKey):
        raise error
