"""The log: one Redis stream per partition, read by plain ranges.

Reading changes nothing, so a stale owner can read and harm nothing (G5). Entries are numbered
densely within their partition (`n`); gaps and backlog are counted by it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from memorybus.codec import Decoder
from memorybus.errors import ForeignKey, UnsafeRedis, WrongPartitionCount
from memorybus.keys import Keys
from memorybus.links import translated
from memorybus.logged import LoggedEvent, logged
from memorybus.redis_urls import redacted
from memorybus.settings import Settings

START = "0-0"
FOREIGN = ""
"""In place of an entry's id: the partition's key holds something that is not ours."""

_FORMAT = "1"
_SAFE_POLICY = "noeviction"


class Head(msgspec.Struct, frozen=True):
    """A partition's end: its last dense number and the last entry's id, or `FOREIGN`."""

    partition: int
    n: int
    entry: str


class Server(msgspec.Struct, frozen=True):
    """What the server says of itself: version, policy, and how it keeps what it was given."""

    version: str
    policy: str
    durability: str

    @property
    def counts_entries_read(self) -> bool:
        """Whether XGROUP SETID takes ENTRIESREAD, so that tools can show a group's lag (7.0)."""
        return int(self.version.split(".")[0]) >= 7


class EventLog:
    """Reads the log. Use from one thread, with a client made by `links.connect_redis`."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        """Connect at the first command."""
        self._redis = redis
        self._settings = settings
        self._where = redacted(settings.redis_url)
        self.keys = Keys(settings.namespace)
        self._decoder = Decoder()

    def open(self) -> Server:
        """Check the server and the log's birth certificate; write it if the log is new.

        Raises:
            LogUnavailable: no answer.
            UnsafeRedis: the server may evict keys.
            WrongPartitionCount: the log was born with another count.
        """
        server = self.server()
        if server.policy != _SAFE_POLICY:
            raise UnsafeRedis(
                f"{self._where}: maxmemory-policy is {server.policy!r}, which lets Redis drop "
                f"events; run: redis-cli config set maxmemory-policy noeviction (and put it into "
                f"redis.conf)"
            )
        self._check_birth()
        return server

    def server(self) -> Server:
        """Return what the server says of itself.

        Raises:
            LogUnavailable: no answer.
        """
        info = self._asked(lambda: self._redis.info("everything"))
        return Server(
            version=str(info["redis_version"]),
            policy=str(info.get("maxmemory_policy", _SAFE_POLICY)),
            durability=self._durability(info),
        )

    def _durability(self, info: Mapping[str, Any]) -> str:
        """Return "memory", "snapshots" or "aof:<fsync policy>"."""
        if int(info.get("aof_enabled", 0)):
            fsync = self._config("appendfsync")
            return f"aof:{fsync}" if fsync else "aof"
        return "snapshots" if self._config("save") else "memory"

    def _config(self, name: str) -> str:
        try:
            return str(dict(self._redis.config_get(name)).get(name, ""))
        except ResponseError:
            return ""  # managed servers forbid CONFIG

    def _check_birth(self) -> None:
        def born() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.hsetnx(self.keys.meta, "partitions", str(self._settings.partitions))
                pipe.hsetnx(self.keys.meta, "format", _FORMAT)
                return pipe.execute()

        self._asked(born, self.keys.meta)
        self.check_partitions()

    def check_partitions(self) -> None:
        """Compare the settings with the log's birth certificate; a log not yet born agrees.

        Raises:
            LogUnavailable: no answer.
            WrongPartitionCount: the log was born with another count.
            ForeignKey: the certificate is not ours.
        """
        key = self.keys.meta
        said = self._asked(lambda: self._redis.hget(key, "partitions"), key)
        if said is not None and not said.isdigit():
            raise ForeignKey(
                f"{key}: `partitions` is {said[:40]!r}, which memorybus did not write; restore "
                f"the right count there, or set another `namespace`"
            )
        if said is not None and int(said) != self._settings.partitions:
            raise WrongPartitionCount(
                f"{self._where}: the log was born with {int(said)} partitions, the settings say "
                f"{self._settings.partitions}; set `partitions = {int(said)}` (the count cannot "
                f"change in place: keys would change their partition)"
            )

    def read(
        self, partition: int, after: str = START, count: int = 500, *, after_n: int = 0
    ) -> list[LoggedEvent]:
        """Return up to `count` events after a place, in order.

        An entry that is not ours, or damaged, comes as an `UnknownEvent` under a key of its own,
        so that it is parked and everything else goes on (G6).

        Args:
            partition: which one.
            after: entry id, exclusive.
            count: at most so many.
            after_n: the dense number at `after`; only used for entries that carry none.

        Raises:
            LogUnavailable: no answer.
            ForeignKey: the key holds something else.
        """
        key = self.keys.log(partition)
        entries = self._asked(lambda: self._redis.xrange(key, f"({after}", "+", count), key)
        events = []
        for entry, fields in entries:
            event = logged(partition, entry.decode(), fields, after_n + 1, self._decoder)
            after_n = event.position.n
            events.append(event)
        return events

    def end(self, partition: int) -> str:
        """Return the id of a partition's last entry, "0-0" if it has none.

        Raises:
            LogUnavailable: no answer.
            ForeignKey: the key holds something else.
        """
        key = self.keys.log(partition)
        last = self._asked(lambda: self._redis.xrevrange(key, count=1), key)
        return str(last[0][0].decode()) if last else START

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is in the log; ids are made of time and never come again.

        Raises:
            LogUnavailable: no answer.
            ForeignKey: the key holds something else.
        """
        key = self.keys.log(partition)
        return bool(self._asked(lambda: self._redis.xrange(key, entry, entry, 1), key))

    def foreign(self) -> list[str]:
        """Return the log's keys that hold something else: those partitions stand still.

        Raises:
            LogUnavailable: no answer.
        """
        return [self.keys.log(h.partition) for h in self.heads() if h.entry == FOREIGN]

    def heads(self) -> list[Head]:
        """Return the end of every partition in one round trip.

        Raises:
            LogUnavailable: no answer.
        """
        partitions = range(self._settings.partitions)

        def ask() -> list[Any]:
            with self._redis.pipeline(transaction=False) as pipe:
                for partition in partitions:
                    pipe.hget(self.keys.state(partition), "n")
                    pipe.xrevrange(self.keys.log(partition), count=1)
                return pipe.execute(raise_on_error=False)

        replies = self._asked(ask)
        return [_head(p, replies[2 * p], replies[2 * p + 1]) for p in partitions]

    def wait(self, after: Mapping[int, str], timeout: float) -> dict[int, str]:
        """Block until a partition has an entry after its place.

        The Redis client must have a socket time-out above `timeout`.

        Args:
            after: entry id by partition.
            timeout: seconds.

        Returns:
            The first new entry's id of each partition with news; empty after the time-out.

        Raises:
            LogUnavailable: no answer.
        """
        streams = {self.keys.log(partition): entry for partition, entry in after.items()}
        by_key = {self.keys.log(partition).encode(): partition for partition in after}
        block = max(1, round(timeout * 1000))
        reply = self._asked(lambda: self._redis.xread(streams, count=1, block=block))  # type: ignore[arg-type]
        return {by_key[key]: entries[-1][0].decode() for key, entries in reply or ()}

    def _asked(self, ask: Any, where: str = "") -> Any:
        try:
            return ask()
        except (RedisError, OSError) as error:
            raise translated(error, where or self._where) from error


def _head(partition: int, n: Any, last: Any) -> Head:
    if isinstance(n, Exception) or isinstance(last, Exception):
        return Head(partition, 0, FOREIGN)
    return Head(
        partition, int(n) if n and n.isdigit() else 0, last[0][0].decode() if last else START
    )
