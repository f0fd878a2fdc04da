"""The log: one Redis stream per partition, read by plain ranges."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
from redis import Redis

from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import log_id_of
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey, LogReplaced, UnsafeRedis, WrongPartitionCount
from memorybus.ids import new_id
from memorybus.log.entry import LoggedEvent, decode_entry
from memorybus.redis.cluster import Cluster, Shard, group_by_shard
from memorybus.redis.connect import ask_redis, redis_errors
from memorybus.redis.facts import SAFE_POLICY, Server, server_facts, weakest_of
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Decoder

START = "0-0"
FOREIGN = ""  # stands for an entry's id if the partition's key holds something that is not ours
_FIRST_POLL_SECONDS = 0.002
_MAX_POLL_SECONDS = 0.032
_FORMAT = "1"
_XRANGE = b"XRANGE"
"""In bytes, so that redis-py returns the plain reply: a dict per entry costs a lane a tenth."""


class Head(msgspec.Struct, frozen=True):
    """A partition's end: its last dense number and the last entry's id, or `FOREIGN`."""

    partition: int
    n: int
    entry: str


class EventLog:
    """Reads the log. Use from one thread."""

    def __init__(self, redis: Redis, settings: Settings, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self.redis = self._redis = redis
        self._settings = settings
        self._where = redacted(settings.redis_url)
        self.keys = Keys(settings.namespace)  # the keys of its namespace
        self.partitions = settings.partitions  # how many it has
        self._decoder = Decoder()

    def open(self) -> Server:
        """Check the server and the log's record (`<ns>:meta`); write it if the log is new."""
        server = self.server()
        if server.policy != SAFE_POLICY:
            raise UnsafeRedis(
                f"{self._where}: maxmemory-policy is {server.policy!r}, which lets Redis drop "
                f"events; run: redis-cli config set maxmemory-policy noeviction (and put it into "
                f"redis.conf)"
            )
        self._check_birth()
        return server

    def server(self) -> Server:
        return weakest_of(
            [ask_redis(partial(server_facts, s.redis), self._where) for s in self.shards()]
        )

    def shards(self) -> list[Shard]:
        keys = [self.keys.log(partition) for partition in range(self._settings.partitions)]
        return ask_redis(lambda: group_by_shard(self._redis, keys), self._where)  # type: ignore[no-any-return]

    def _check_birth(self) -> None:
        given = {
            "partitions": str(self._settings.partitions),
            "format": _FORMAT,
            "log": new_id(),  # another id means another log
        }
        key = self.keys.meta
        record = ask_redis(lambda: self._redis.hgetall(key), key)
        with redis_errors(key), self._redis.pipeline(transaction=False) as pipe:
            # A full server refuses writes, so only what is missing is written.
            for name in (name for name in given if name.encode() not in record):
                pipe.hsetnx(key, name, given[name])
            pipe.execute()
        self.check_partitions()

    def check_partitions(self) -> None:
        """Compare the settings with the log's record (`<ns>:meta`); a new log has none."""
        key = self.keys.meta
        stored = ask_redis(lambda: self._redis.hget(key, "partitions"), key)
        if stored is not None and not stored.isdigit():
            raise ForeignKey(
                f"{key}: `partitions` is {stored[:40]!r}, which memorybus did not write; restore "
                f"the right count there, or set another `namespace`"
            )
        if stored is not None and int(stored) != self._settings.partitions:
            raise WrongPartitionCount(
                f"{self._where}: the log has {int(stored)} partitions, the settings have "
                f"{self._settings.partitions}; set `partitions = {int(stored)}` (the count cannot "
                f"change in place: keys would change their partition)"
            )

    def read(self, partition: int, after: str = START, count: int = 500) -> list[LoggedEvent]:
        """Return up to `count` events after a place (exclusive), without entries of other programs.

        An unreadable entry becomes an `UnknownEvent` with a key of its own (G6).
        """
        events: list[LoggedEvent] = []
        more = True
        while more and not events:
            page = self._entries(partition, after, count)
            seen = (decode_entry(partition, entry.decode(), f, self._decoder) for entry, f in page)
            events = [event for event in seen if event is not None]
            more = len(page) == count
            after = page[-1][0].decode() if page else after
        return events

    def _entries(self, partition: int, after: str, count: int) -> list[tuple[bytes, list[bytes]]]:
        key = self.keys.log(partition)
        entries: list[tuple[bytes, list[bytes]]]
        entries = ask_redis(lambda: read_entries(self._redis, key, f"({after}", count=count), key)
        return entries

    def last_entry(self, partition: int) -> str:
        """Return the id of a partition's last entry, "0-0" if it has none."""
        key = self.keys.log(partition)
        last = ask_redis(lambda: self._redis.xrevrange(key, count=1), key)
        return str(last[0][0].decode()) if last else START

    def has_entry(self, partition: int, entry: str) -> bool:
        """Return whether an entry is in the log; ids consist of times and are never used again."""
        key = self.keys.log(partition)
        return bool(ask_redis(lambda: read_entries(self._redis, key, entry, entry), key))

    def foreign_keys(self) -> list[str]:
        """Return the log's keys that hold something else; their partitions cannot be used."""
        return [self.keys.log(h.partition) for h in self.heads() if h.entry == FOREIGN]

    def heads(self) -> list[Head]:
        partitions = range(self._settings.partitions)
        with redis_errors(self._where), self._redis.pipeline(transaction=False) as pipe:
            for partition in partitions:
                pipe.hget(self.keys.state(partition), "n")
                pipe.xrevrange(self.keys.log(partition), count=1)
            replies = pipe.execute(raise_on_error=False)
        pairs = zip(partitions, replies[::2], replies[1::2], strict=True)
        return [_head(partition, n, last) for partition, n, last in pairs]

    def wait(self, after: Mapping[int, str], timeout: float) -> dict[int, str]:
        """Block until a partition has an entry after its place; return the first new ids.

        The client's socket time-out must exceed `timeout`. A cluster is polled, with pauses up to
        1/30 s.
        """
        if isinstance(self._redis, Cluster):
            return self._poll(after, timeout)
        streams: Any = {self.keys.log(partition): entry for partition, entry in after.items()}
        by_key = {self.keys.log(partition).encode(): partition for partition in after}
        block = max(1, round(timeout * 1000))
        reply = ask_redis(lambda: self._redis.xread(streams, count=1, block=block), self._where)
        return {by_key[key]: entries[-1][0].decode() for key, entries in reply or ()}

    def _poll(self, after: Mapping[int, str], timeout: float) -> dict[int, str]:
        pause = _FIRST_POLL_SECONDS
        deadline = self._clock.monotonic() + timeout
        while not (news := self._news(after)) and self._clock.monotonic() < deadline:
            self._clock.sleep(pause)
            pause = min(_MAX_POLL_SECONDS, pause * 2)
        return news

    def _news(self, after: Mapping[int, str]) -> dict[int, str]:
        with redis_errors(self._where), self._redis.pipeline(transaction=False) as pipe:
            queued: Any = pipe
            for partition, entry in after.items():
                words = (self.keys.log(partition), f"({entry}", "+", "COUNT", 1)
                queued.execute_command(_XRANGE, *words)
            replies = zip(after, pipe.execute(), strict=True)
        return {partition: entries[0][0].decode() for partition, entries in replies if entries}


def read_log_id(redis: Redis, keys: Keys) -> str | None:
    """Return the id of the present log; None if it has no record (`<ns>:meta`)."""
    body = ask_redis(lambda: redis.hget(keys.meta, "log"), keys.meta)
    return log_id_of(body, keys.meta) if isinstance(body, bytes) else None


def check_log_id(redis: Redis, keys: Keys, known: str | None) -> None:
    """Make sure that the log is still the one with a known id.

    Call it after taking a lane. A lane belongs to its log: if the log is wiped later, the lane's
    epoch goes with it, and every script refuses it. So whoever holds a lane and has seen the id
    since changes nothing in another log.
    """
    log_id = read_log_id(redis, keys)
    if log_id != known:
        raise LogReplaced(f"{keys.meta}: the log {known} was wiped or replaced: it is {log_id} now")


def read_entries(
    redis: Redis, key: str, first: str, last: str = "+", *, count: int = 1
) -> list[tuple[bytes, list[bytes]]]:
    """Return a stream's entries as Redis gives them: the id, then names and values alternate."""
    untyped: Any = redis
    entries: list[tuple[bytes, list[bytes]]]
    entries = untyped.execute_command(_XRANGE, key, first, last, "COUNT", count)
    return entries


def _head(partition: int, n: Any, last: Any) -> Head:
    if isinstance(n, Exception) or isinstance(last, Exception):
        return Head(partition, 0, FOREIGN)
    return Head(
        partition, int(n) if n and n.isdigit() else 0, last[0][0].decode() if last else START
    )


def read_head_numbers(redis: Redis, keys: Keys, partitions: Iterable[int]) -> dict[int, int]:
    wanted = tuple(partitions)
    with redis.pipeline(transaction=False) as pipe:
        for partition in wanted:
            pipe.hget(keys.state(partition), "n")
        numbers = pipe.execute()
    return {p: int(n) for p, n in zip(wanted, numbers, strict=True) if n}
