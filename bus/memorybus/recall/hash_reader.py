"""Reads hashes over its own connection, in one round trip and within a given time.

This is the part of `cache` that needs redis-py: it is imported when the flusher connects.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from redis.exceptions import RedisError

from memorybus.config.settings import Settings
from memorybus.redis.cluster import Cluster
from memorybus.redis.connect import connect_redis, translate_redis_error

_MIN_WAIT_SECONDS = 0.001
"""The fewest seconds for which a socket waits: with 0 it would never wait."""

_UNCHANGED_TIMEOUT_SHARE = 0.95
"""Share of the deadline from which the socket's time-out stays as it is: changing it costs time."""


class HashReader:
    """Reads hashes. Not thread-safe: one read at a time; after a failure, make another.

    It uses redis-py's connection itself: a client's bookkeeping costs a tenth of a whole read.

    Attributes:
        is_asking: whether a read has begun. It stays true after a read that failed, since its reply
            may still come; then the connection must not be used any more.

    Args:
        settings: see `Settings`; `prefetch_deadline` is the longest time of a read.

    Raises:
        LogUnavailable: no connection.
    """

    def __init__(self, settings: Settings) -> None:
        """Connect."""
        self.is_asking = False
        self._redis: Any = connect_redis(settings, single=True)
        self._connection = None if isinstance(self._redis, Cluster) else self._redis.connection
        self._deadline = settings.prefetch_deadline
        self._limited: dict[Any, float] = {}

    def ping(self) -> None:
        """Wait for an answer: a Redis that hangs takes connections all the same.

        Raises:
            LogUnavailable: there is none; the connection is closed.
        """
        try:
            self._redis.ping()
        except (RedisError, OSError) as error:
            self.close()
            raise translate_redis_error(error, "prefetch") from error

    def read(self, keys: Sequence[str], left: float) -> list[list[bytes]]:
        """Return the fields of some hashes; names and values alternate.

        Args:
            keys: at least one key.
            left: seconds within which the server must answer.

        Raises:
            LogUnavailable: it did not answer in time.
            LogError: the value of a key is not a hash.
        """
        self.is_asking = True
        try:
            found = self._ask(keys, left)
        except (RedisError, OSError) as error:
            raise translate_redis_error(error, keys[0]) from error
        self.is_asking = False
        return found

    def _ask(self, keys: Sequence[str], left: float) -> list[list[bytes]]:
        connection = self._connection
        if connection is None:
            return self._ask_shards(keys, left)
        self._send(connection, keys, left)
        return [connection.read_response() for _ in keys]

    def _ask_shards(self, keys: Sequence[str], left: float) -> list[list[bytes]]:
        """Read from the shards of a cluster, all of them asked before the first one answers."""
        connections = [self._redis.client_for_key(key).connection for key in keys]
        asked: dict[Any, list[str]] = {}
        for connection, key in zip(connections, keys, strict=True):
            asked.setdefault(connection, []).append(key)
        for connection, held in asked.items():
            self._send(connection, held, left)
        return [connection.read_response() for connection in connections]

    def _send(self, connection: Any, keys: Sequence[str], left: float) -> None:
        """Send all commands in one piece: with two pieces, the server may wake and answer twice."""
        self._limit_socket(connection, left)
        connection.send_packed_command([b"".join(map(_pack_hgetall, keys))])

    def _limit_socket(self, connection: Any, left: float) -> None:
        """Set the socket's time-out to the time left, or to the deadline if nearly all is left."""
        wanted = (
            self._deadline
            if left > self._deadline * _UNCHANGED_TIMEOUT_SHARE
            else max(_MIN_WAIT_SECONDS, left)
        )
        if wanted != self._limited.get(connection):
            connection.update_current_socket_timeout(wanted)
            self._limited[connection] = wanted

    def close(self) -> None:
        """Close the connection, so that a late reply is not read as the answer to the next read."""
        self._redis.close()


@lru_cache(maxsize=4_096)
def _pack_hgetall(key: str) -> bytes:
    """Return the command in Redis's protocol; redis-py needs more time for this than Redis.

    https://redis.io/docs/latest/develop/reference/protocol-spec
    """
    name = key.encode()
    return b"*2\r\n$7\r\nHGETALL\r\n$%d\r\n%b\r\n" % (len(name), name)
