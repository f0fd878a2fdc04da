"""The records of an instance's lanes in Redis, which commands read or delete."""

from collections.abc import Sequence
from typing import Any

import msgspec
from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis, translate_redis_error
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.done_set import decode_done_above

HALTED = "halted"
"""The field of a lane's hash in which its owner says why the lane has stopped."""


class LaneState(msgspec.Struct, frozen=True):
    """A lane.

    Attributes:
        n: its checkpoint's dense number.
        parked: events put aside.
        discarded: dead letters that an operator gave up.
        owned: whether somebody owns it now.
        settled: whether nothing is done above its checkpoint: no event waits for another try.
    """

    n: int
    parked: int
    discarded: int
    owned: bool
    settled: bool = True


class LaneOwner(msgspec.Struct, frozen=True):
    """Who works on a lane.

    Attributes:
        worker: its id; "" if nobody owns the lane now.
        epoch: the lane's newest fencing token; 0 if it never had an owner.
        moved_at: when its checkpoint last moved (server's wall time, milliseconds); 0 for never.
    """

    worker: str
    epoch: int
    moved_at: int


class LanePassage(msgspec.Struct, frozen=True):
    """How far a lane is, seen from one of its partition's events.

    Attributes:
        n: its checkpoint's dense number; 0 of a lane that never began.
        done: what is done above it, as a bitmap: bit i says that n + 1 + i is done.
        parked: how many events of the event's order key wait behind a dead letter; 0 for none.
        discarded: dead letters of the lane that an operator gave up.
        owned: whether somebody owns it now.
        halted: why its owner has stopped; "" if it has not. Hostile text.
    """

    n: int = 0
    done: int = 0
    parked: int = 0
    discarded: int = 0
    owned: bool = False
    halted: str = ""

    def has_passed(self, n: int) -> bool:
        """Say whether the lane is past an event: it was applied, put aside or left out."""
        return n <= self.n or bool(self.done >> (n - self.n - 1) & 1)

    def before(self, n: int) -> int:
        """Return how many undone events precede event `n`, which the lane has not passed."""
        below = n - self.n - 1
        return below - (self.done & ((1 << below) - 1)).bit_count()


class LaneKeys:
    """The lanes of instances. Belongs to one thread; raises `LogUnavailable` without Redis."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._partitions = range(settings.partitions)

    def states(self, name: str) -> list[LaneState]:
        """Return an instance's lanes by partition, in one round trip."""

        def ask() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                for p in self._partitions:
                    pipe.hmget(self._keys.lane(p, name), "n", "parked", "discarded", "done")
                    pipe.exists(self._keys.lease(p, name))
                return pipe.execute()

        replies = iter(ask_redis(ask, name))
        return [_read_state(*next(replies), owned=next(replies)) for _ in self._partitions]

    def owners(self, name: str) -> list[LaneOwner]:
        """Return who works on an instance's lanes, by partition, in one round trip."""

        def ask() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                for p in self._partitions:
                    pipe.get(self._keys.lease(p, name))
                    pipe.hmget(self._keys.lane(p, name), "epoch", "at")
                return pipe.execute()

        replies = iter(ask_redis(ask, name))
        return [_read_owner(next(replies), *next(replies)) for _ in self._partitions]

    def passages(self, partition: int, names: Sequence[str], key: str) -> dict[str, LanePassage]:
        """Return how far the lanes of instances are in one partition, in one round trip.

        Args:
            partition: which one.
            names: the instances.
            key: an order key: whether it is parked.
        """

        def ask() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                for name in names:
                    fields = ("n", "done", "discarded", HALTED)
                    pipe.hmget(self._keys.lane(partition, name), *fields)
                    pipe.exists(self._keys.lease(partition, name))
                    pipe.hget(self._keys.parked(partition, name), key)
                return pipe.execute()

        replies = iter(ask_redis(ask, lane_name(partition)))
        return {name: _read_passage(next(replies), next(replies), next(replies)) for name in names}

    def note_new_lanes(self, name: str) -> None:
        """Note that an instance's lanes are new, so that a ``lookup`` backend need not be asked.

        A lane that is not there may have been lost by a Redis that went back; lanes that are there
        keep what they have.
        """
        calls = [
            scripts.note_new_lane(self._keys, partition, name) for partition in self._partitions
        ]
        replies = ask_redis(lambda: scripts.run_many(self._redis, calls), name)
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate_redis_error(reply, name)

    def has_dead_letter_requests(self, name: str) -> bool:
        """Say whether operators' requests about its dead letters are still open."""
        return bool(ask_redis(lambda: self._redis.exists(self._keys.redo(name)), name))

    def count_remaining(self, name: str) -> int:
        """Count the lanes of which Redis still holds anything, whether or not they had an owner."""

        def ask() -> list[int]:
            with self._redis.pipeline(transaction=False) as pipe:
                for partition in self._partitions:
                    pipe.exists(*self._keys_of(partition, name))
                return pipe.execute()

        return sum(bool(found) for found in ask_redis(ask, name))

    def remove(self, name: str) -> None:
        """Delete all that Redis holds of an instance's lanes: progress, dead letters, counts.

        Raises:
            ConfigError: somebody owns one of them.
        """
        if any(lane.owned for lane in self.states(name)):
            raise ConfigError(f"lanes of {name} have owners; stop what serves it first")

        def delete() -> None:
            with self._redis.pipeline(transaction=False) as pipe:
                for partition in self._partitions:
                    pipe.delete(*self._keys_of(partition, name))
                pipe.delete(self._keys.redo(name))
                pipe.delete(self._keys.work(name))
                pipe.execute()

        ask_redis(delete, name)
        ask_redis(lambda: self._ungroup(name), name)

    def _ungroup(self, name: str) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in self._partitions:
                pipe.xgroup_destroy(self._keys.log(partition), name)
            pipe.execute(raise_on_error=False)  # a partition without a log has no group

    def _keys_of(self, partition: int, name: str) -> Sequence[str]:
        keys = self._keys
        kinds = (keys.lane, keys.parked, keys.dead, keys.amended)
        return [key(partition, name) for key in kinds]


def _read_passage(lane: Sequence[Any], owned: Any, parked: Any) -> LanePassage:
    n, done, discarded, halted = lane
    return LanePassage(
        n=int(n or 0),
        done=decode_done_above(done or b"", int(n or 0)),
        parked=_read_parked_count(parked),
        discarded=int(discarded or 0),
        owned=bool(owned),
        halted=(halted or b"").decode("utf-8", "replace"),
    )


def _read_parked_count(parked: bytes | None) -> int:
    """Return how many events of a key wait; an older release kept no number."""
    if parked is None:
        return 0
    count = parked.partition(b" ")[2]
    return int(count) if count.isdigit() else 1


def _read_state(n: Any, parked: Any, discarded: Any, done: Any, *, owned: Any) -> LaneState:
    return LaneState(
        n=int(n or 0),
        parked=int(parked or 0),
        discarded=int(discarded or 0),
        owned=bool(owned),
        settled=not decode_done_above(done or b"", int(n or 0)),
    )


def _read_owner(lease: Any, epoch: Any, at: Any) -> LaneOwner:
    worker = (lease or b"").decode("utf-8", "replace").partition(":")[2]
    return LaneOwner(worker, int(epoch or 0), int(at or 0))
