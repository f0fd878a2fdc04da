"""The records of an instance's lanes in Redis, which commands read or delete."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from redis import Redis
from redis.client import Pipeline

from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.log.stream import START
from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis, redis_errors, translate_redis_error
from memorybus.redis.keys import Keys, lane_name

HALTED = "halted"  # the field of a lane's hash in which its owner says why the lane has stopped
_FIELDS = ("entry", "n", "done", "parked", "discarded", HALTED, "epoch", "at")
_DONE_SET_HEADER = 8


class LaneState(msgspec.Struct, frozen=True):
    """A lane as Redis has it; a lane that never began has the defaults."""

    entry: str = START  # its checkpoint, an entry id
    n: int = 0  # the dense number of that entry
    done: int = 0  # what is done above it, as a bitmap: bit i says that n + 1 + i is done
    parked: int = 0  # how many events are parked in it, of all order keys
    discarded: int = 0  # dead letters that an operator gave up
    halted: str = ""  # why its owner has stopped it; "" if it has not. Hostile text
    epoch: int = 0  # its newest fencing token; 0 if it never had an owner
    # when its checkpoint last moved (server's wall time, milliseconds); 0 for never
    moved_at: int = 0
    owned: bool = False  # whether somebody owns it now
    owner: str = ""  # the worker that does; "" for none
    parked_keys: int = 0  # how many order keys wait for an operator
    dead: int = 0  # how many events these keys have
    head: int = 0  # the last number of its partition

    @property
    def done_above(self) -> int:
        return self.done.bit_count()

    @property
    def settled(self) -> bool:
        """Whether nothing is done above the checkpoint: no event waits for another try."""
        return not self.done

    @property
    def backlog(self) -> int:
        return max(0, self.head - self.n - self.done_above)

    @property
    def refused(self) -> int:
        """How many events were refused for good: the first of each parked key."""
        return min(self.parked_keys, self.dead)

    @property
    def waiting_behind(self) -> int:
        """How many events wait behind refused ones of their keys."""
        return self.dead - self.refused

    def has_passed(self, n: int) -> bool:
        """Return whether the lane has passed an event: it was applied, parked or left out."""
        return n <= self.n or bool(self.done >> (n - self.n - 1) & 1)

    def before(self, n: int) -> int:
        """Return how many undone events precede event `n`, which the lane has not passed."""
        below = n - self.n - 1
        return below - (self.done & ((1 << below) - 1)).bit_count()


LanesByInstance = dict[str, list[LaneState]]
"""The lanes of each instance, in the order of partitions."""


def encode_done_set(n: int, done: int) -> bytes:
    """Return a done-set as bytes: the checkpoint's number and the bitmap, both little-endian."""
    if not done:
        return b""
    size = (done.bit_length() + 7) // 8
    return n.to_bytes(_DONE_SET_HEADER, "little") + done.to_bytes(size, "little")


def decode_done_above(done: bytes, n: int) -> int:
    """Return a stored done-set as a bitmap above `n`."""
    if len(done) <= _DONE_SET_HEADER:
        return 0
    base = int.from_bytes(done[:_DONE_SET_HEADER], "little")
    bits = int.from_bytes(done[_DONE_SET_HEADER:], "little")
    return bits >> (n - base) if n >= base else 0


class LaneKeys:
    """The lanes of instances. Belongs to one thread; raises `LogUnavailable` without Redis."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._partitions = range(settings.partitions)

    def states(self, name: str) -> list[LaneState]:
        lanes: LanesByInstance = ask_redis(lambda: self.read([name], foreign=False), name)
        return lanes[name]

    def read(self, names: Sequence[str], *, foreign: bool = True) -> LanesByInstance:
        keys: list[str] = []
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in self._partitions:
                state = self._keys.state(partition)
                pipe.hget(state, "n")
                keys.append(state)
                for name in names:
                    keys += self._ask(pipe, partition, name)
            replies = iter(_replies(pipe, keys, foreign=foreign))
        lanes: LanesByInstance = {name: [] for name in names}
        for _ in self._partitions:
            head = reply_number(next(replies))
            for name in names:
                lanes[name].append(_read_lane(replies, head))
        return lanes

    def _ask(self, pipe: Pipeline, partition: int, name: str) -> Sequence[str]:
        """Ask for what `_read_lane` reads; return the key of each reply."""
        kinds = (self._keys.lane, self._keys.lease, self._keys.parked, self._keys.dead)
        lane, lease, parked, dead = keys = [key(partition, name) for key in kinds]
        pipe.hmget(lane, *_FIELDS)
        pipe.get(lease)
        pipe.hlen(parked)
        pipe.xlen(dead)
        return keys

    def lanes_of_key(
        self, partition: int, names: Sequence[str], key: str
    ) -> dict[str, tuple[LaneState, int]]:
        """Return instances' lanes in one partition, and how much of an order key is parked."""
        keys: list[str] = []
        with redis_errors(lane_name(partition)), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                parked = self._keys.parked(partition, name)
                keys += (*self._ask(pipe, partition, name), parked)
                pipe.hget(parked, key)
            replies = iter(_replies(pipe, keys, foreign=False))
        return {name: (_read_lane(replies), _read_parked_count(next(replies))) for name in names}

    def note_new_lanes(self, name: str) -> None:
        """Note that an instance's lanes are new, and none that Redis has lost."""
        calls = [
            scripts.note_new_lane(self._keys, partition, name) for partition in self._partitions
        ]
        replies = ask_redis(lambda: scripts.run_many(self._redis, calls), name)
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate_redis_error(reply, name)

    def has_dead_letter_requests(self, name: str) -> bool:
        """Return whether some requests of operators about its dead letters are still open."""
        return bool(ask_redis(lambda: self._redis.exists(self._keys.redo(name)), name))

    def count_remaining(self, name: str) -> int:
        """Count the lanes of which Redis still holds anything, whether or not they had an owner."""
        with redis_errors(name), self._redis.pipeline(transaction=False) as pipe:
            for partition in self._partitions:
                pipe.exists(*self._keys_of(partition, name))
            return sum(bool(reply) for reply in pipe.execute())

    def remove(self, name: str) -> None:
        """Delete all that Redis holds of an instance's lanes: progress, dead letters, counts."""
        if any(lane.owned for lane in self.states(name)):
            raise ConfigError(f"workers own lanes of {name}; stop the workers that serve it first")
        with redis_errors(name), self._redis.pipeline(transaction=False) as pipe:
            for partition in self._partitions:
                pipe.delete(*self._keys_of(partition, name))
            pipe.delete(self._keys.redo(name))
            pipe.delete(self._keys.work(name))
            pipe.execute()
            for partition in self._partitions:
                pipe.xgroup_destroy(self._keys.log(partition), name)
            pipe.execute(raise_on_error=False)  # a partition without a log has no group

    def _keys_of(self, partition: int, name: str) -> Sequence[str]:
        keys = self._keys
        kinds = (keys.lane, keys.parked, keys.dead, keys.amended)
        return [key(partition, name) for key in kinds]


def _replies(pipe: Pipeline, keys: Sequence[str], *, foreign: bool) -> list[Any]:
    replies = pipe.execute(raise_on_error=False)
    for key, reply in zip(keys, replies, strict=True):
        if isinstance(reply, Exception) and not foreign:
            raise translate_redis_error(reply, key) from reply
    return replies


def _read_lane(replies: Iterator[Any], head: int = 0) -> LaneState:
    """Return a lane from the next replies to `LaneKeys._ask`; `head` is its partition's last n."""
    fields, lease, parked_keys, dead = (next(replies) for _ in range(4))
    values = fields if isinstance(fields, list) else [None] * len(_FIELDS)
    entry, n, done, parked, discarded, halted, epoch, at = values
    held = lease if isinstance(lease, bytes) else b""
    return LaneState(
        entry=entry.decode() if entry else START,
        n=int(n or 0),
        done=decode_done_above(done or b"", int(n or 0)),
        parked=int(parked or 0),
        discarded=int(discarded or 0),
        halted=(halted or b"").decode("utf-8", "replace"),
        epoch=int(epoch or 0),
        moved_at=int(at or 0),
        owned=isinstance(lease, bytes),
        owner=held.decode("utf-8", "replace").partition(":")[2],
        parked_keys=reply_number(parked_keys),
        dead=reply_number(dead),
        head=head,
    )


def reply_number(reply: Any) -> int:
    """Return a reply as a number; 0 for none, and for the error that a foreign key causes."""
    return 0 if reply is None or isinstance(reply, Exception) else int(reply)


def _read_parked_count(parked: bytes | None) -> int:
    """Return how many events of a key wait; an older release did not store a number."""
    if parked is None:
        return 0
    count = parked.partition(b" ")[2]
    return int(count) if count.isdigit() else 1
