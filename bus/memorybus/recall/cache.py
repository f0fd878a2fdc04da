"""The warm cache, from which an agent reads the memories that were recalled for its sessions."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.wakeup import Waiters
from memorybus.config.settings import Settings
from memorybus.errors import LogError, LogUnavailable
from memorybus.msgspec_types import prepared
from memorybus.recall.model import GENERATION, WarmResult
from memorybus.receipt import LogState
from memorybus.redis.keys import Keys

_log = logging.getLogger("memorybus")
_POLL_SECONDS = 0.01
_LATE_ANSWER_SECONDS = 0.05
"""Seconds between looks for an answer; seconds that other providers get after the first answer."""

_MIN_WAIT_SECONDS = 0.001  # the fewest seconds for which a socket waits: with 0 it would never wait
_UNCHANGED_TIMEOUT_SHARE = 0.95
"""Share of the deadline from which the socket's time-out stays as it is: changing it costs time."""

_decode_result = msgspec.msgpack.Decoder(prepared(WarmResult)).decode


class WarmCache:
    """Reads warm results over one connection, in one round trip. Any thread may call it."""

    def __init__(self, settings: Settings, clock: Clock, log_state: Callable[[], LogState]) -> None:
        self.wants_connection = True
        self._log_state = log_state
        self._clock = clock
        self._connected = Waiters()
        self._settings = settings
        self._order = tuple(dict.fromkeys(settings.providers))
        self._keys = Keys(settings.namespace)
        self._lock = threading.RLock()
        self._reader: HashReader | None = None
        self._waited = False  # in vain, since there was a connection
        self._pid = os.getpid()

    def keys(self, owner: str, *slots: str) -> tuple[str, ...]:
        """Return the keys that `read` reads: the marks of an owner, and slots by preference."""
        return (self._keys.retracted(owner), *map(self._keys.warm, slots))

    def sections(self, keys: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the warm lines of `keys`: the providers in the order of a memory block."""
        warm = self.read(keys) or {}
        return self.in_provider_order({name: result.lines for name, result in warm.items()})

    def await_results(self, keys: Sequence[str], until: float) -> None:
        """Wait for the first result of `keys`, and a moment longer for others (G9)."""
        answered = False
        while self._log_state() != "down" and self._clock.monotonic() < until:
            if not answered and self.read(keys):
                answered, until = True, min(until, self._clock.monotonic() + _LATE_ANSWER_SECONDS)
            self._clock.sleep(_POLL_SECONDS)

    def read(self, keys: Sequence[str]) -> dict[str, WarmResult] | None:
        """Return the warm results under the first of the `keys` that has any, by provider.

        Results that may hold what their owner has taken back since are left out. None if Redis is
        away or did not answer in time.
        """
        if self._pid != os.getpid():
            self._drop_parents_connection()
        until = self._clock.monotonic() + self._settings.prefetch_deadline
        if self._reader is None and self._log_state() != "down":
            wait = 0.0 if self._waited else self._settings.prefetch_deadline
            self._waited = not self._connected.wait_for(self._is_connected, wait)
            if self._waited and self._log_state() == "unknown":
                return {}  # the process has just begun, and nothing has failed yet
        try:
            if not self._lock.acquire(timeout=max(0.0, until - self._clock.monotonic())):
                return None
            return _readable_results(*self._read_hashes(keys, until))
        except (LogError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._waited = True
            _log.debug("prefetch: %s", error)
            return None
        finally:
            try:  # noqa: SIM105 - `suppress` is Python: an interrupt would leave the lock held
                self._lock.release()
            except RuntimeError:  # we did not get the lock in time
                pass

    def _is_connected(self) -> bool:
        return self._reader is not None  # the flusher connects

    def _read_hashes(self, keys: Sequence[str], until: float) -> list[list[bytes]]:
        """Read some hashes in one round trip, until `until`; names and values alternate."""
        reader = self._reader
        if reader is None:
            raise LogUnavailable("not connected to Redis")
        if reader.is_asking:  # by a signal handler, between our own question and its reply
            raise LogUnavailable("this thread is in the middle of a read")
        try:
            return reader.read(keys, until - self._clock.monotonic())
        except BaseException:  # an interrupt leaves a reply behind as well
            self.wants_connection = True
            self._drop_connection()
            raise

    def connect(self) -> None:
        """Connect if need be, on the flusher's thread; the agent's only reads."""
        if not self.wants_connection:
            return
        if self._pid != os.getpid():
            self._drop_parents_connection()
        reader = HashReader(self._settings)
        if self._waited:
            reader.ping()
        with self._lock:
            self._reader, self._waited, self.wants_connection = reader, False, False
            self._connected.wake_all()

    def _drop_parents_connection(self) -> None:
        """After a fork, drop connection and lock: they are the parent's, and replies would mix."""
        self._reader, self._lock, self.wants_connection = None, threading.RLock(), True
        self._connected, self._waited = Waiters(), False
        self._pid = os.getpid()  # last, so that no thread uses the parent's connection or lock

    def _drop_connection(self) -> None:
        """Drop the connection, so that a late reply is not read as the answer to the next read."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def in_provider_order(
        self, lines: Mapping[str, tuple[str, ...]]
    ) -> list[tuple[str, tuple[str, ...]]]:
        ordered = [(name, lines[name]) for name in self._order if name in lines]
        if len(ordered) == len(lines):
            return ordered
        return ordered + sorted(pair for pair in lines.items() if pair[0] not in self._order)

    def close(self) -> None:
        if self._pid != os.getpid():
            self._drop_parents_connection()
        with self._lock:
            self._drop_connection()


def _readable_results(marks: list[bytes], *slots: list[bytes]) -> dict[str, WarmResult]:
    """Return the first slot's results, if it has any, without those before their owner's mark."""
    fields = next(filter(None, slots), [])
    results = {
        name.decode(): _decode_result(body)
        for name, body in zip(fields[::2], fields[1::2], strict=True)
        if not name.startswith(GENERATION)
    }
    if marks:
        mark_of = dict(zip(marks[::2], marks[1::2], strict=True))
        results = {
            name: result
            for name, result in results.items()
            if mark_of.get(name.encode(), b"").decode() == result.mark
        }
    return results


class HashReader:
    """Reads hashes. Not thread-safe: one read at a time; after a failure, make another.

    It uses redis-py's connection itself: a client's bookkeeping costs a tenth of a whole read.
    """

    def __init__(self, settings: Settings) -> None:
        from redis.exceptions import RedisError

        from memorybus.redis.cluster import Cluster
        from memorybus.redis.connect import connect_redis, translate_redis_error

        # Whether a read has begun. It stays true after a read that failed, since its reply may
        # still come; then the connection must not be used any more.
        self.is_asking = False
        self._errors = (RedisError, OSError)
        self._translate = translate_redis_error
        self._redis: Any = connect_redis(settings, single=True)
        self._connection = None if isinstance(self._redis, Cluster) else self._redis.connection
        self._deadline = settings.prefetch_deadline
        self._limited: dict[Any, float] = {}

    def ping(self) -> None:
        """Wait for an answer: a Redis that hangs takes connections all the same."""
        try:
            self._redis.ping()
        except self._errors as error:
            self.close()
            raise self._translate(error, "prefetch") from error

    def read(self, keys: Sequence[str], left: float) -> list[list[bytes]]:
        self.is_asking = True
        connection = self._connection
        try:
            if connection is None:
                shards = self._ask_shards(keys, left)
            else:
                self._send(connection, keys, left)
                shards = [connection.read_response() for _ in keys]
        except self._errors as error:
            raise self._translate(error, keys[0]) from error
        self.is_asking = False
        return shards

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
        """Send all commands in one piece: with two pieces, the server may wake and answer twice.

        The socket's time-out is the time left, or the deadline if nearly all of it is left.
        """
        wanted = (
            self._deadline
            if left > self._deadline * _UNCHANGED_TIMEOUT_SHARE
            else max(_MIN_WAIT_SECONDS, left)
        )
        if wanted != self._limited.get(connection):
            connection.update_current_socket_timeout(wanted)
            self._limited[connection] = wanted
        connection.send_packed_command([b"".join(map(_pack_hgetall, keys))])

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
