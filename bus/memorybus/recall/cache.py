"""The warm cache: an agent reads here what was recalled for its sessions.

No failure and no delay of Redis reaches the agent: a read returns within its deadline, if necessary
with nothing (G9).
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.wakeup import Waiters
from memorybus.config.settings import Settings
from memorybus.errors import LogError, LogUnavailable
from memorybus.recall.model import WarmResult, warm_results
from memorybus.receipt import LogState
from memorybus.redis.keys import Keys

_log = logging.getLogger("memorybus")

_LOOK = 0.01
_OTHERS = 0.05
"""Seconds between looks for an answer; seconds that other providers get after the first answer."""

_LEAST = 0.001
_NEARLY = 0.95


class WarmCache:
    """Reads warm results. Safe to call from any thread; one connection, one round trip.

    Args:
        settings: see `Settings`; `prefetch_deadline` bounds every read.
        clock: time.
        log_state: what the flusher knows of Redis.
    """

    def __init__(self, settings: Settings, clock: Clock, log_state: Callable[[], LogState]) -> None:
        """Read nothing until `connect`."""
        self.wants_connection = True
        self._limited: dict[Any, float] = {}
        self._log_state = log_state
        self._clock = clock
        self._connected = Waiters()
        self._settings = settings
        self._order = {name: place for place, name in enumerate(settings.providers)}
        self._keys = Keys(settings.namespace)
        self._lock = threading.RLock()
        self._redis: Any = None
        self._is_asking = False
        self._pid = os.getpid()
        self.failures = 0

    def sections(self, owner: str, slot: str, fallback: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return the warm lines of a session's slot, or of the slot of the session it continues.

        Args:
            owner: the owner who asks (`keys.owner_slot`).
            slot: the session's slot.
            fallback: the slot of the session before, or "".

        Returns:
            The providers in the order of a memory block, with their lines.
        """
        results = self.read(owner, [slot, fallback] if fallback else [slot])
        return self.in_provider_order({name: result.lines for name, result in results.items()})

    def await_results(self, owner: str, slot: str, until: float) -> None:
        """Wait for the first result of a slot, and a moment longer for others (G9).

        Args:
            owner: the owner of the slot (`keys.owner_slot`).
            slot: the slot.
            until: the monotonic time at which to stop; while Redis is known to be away, it does
                not wait.
        """
        answered = False
        while self._log_state() != "down" and self._clock.monotonic() < until:
            if not answered and self.read(owner, [slot]):
                answered, until = True, min(until, self._clock.monotonic() + _OTHERS)
            self._clock.sleep(_LOOK)

    def read(self, owner: str, slots: Sequence[str]) -> dict[str, WarmResult]:
        """Return the warm results of the first slot that has any, by provider.

        Results that may hold what their owner has taken back since are left out. The dict is empty
        if there are none, or if Redis did not answer in time (counted in `failures`).
        """
        self._check_process()
        until = self._clock.monotonic() + self._settings.prefetch_deadline
        if self._redis is None and self._log_state() != "down":
            self._connected.wait_for(self._is_connected, self._settings.prefetch_deadline)
        try:
            if not self._lock.acquire(timeout=max(0.0, until - self._clock.monotonic())):
                self.failures += 1
                return {}
            warm = [self._keys.warm(slot) for slot in slots]
            marks, *found = self._read_hashes([self._keys.retracted(owner), *warm], until)
            fields = next((fields for fields in found if fields), [])
            return _drop_retracted(warm_results(_pairs(fields)), dict(_pairs(marks)))
        except (LogError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.failures += 1
            _log.debug("prefetch: %s", error)
            return {}
        finally:
            try:  # noqa: SIM105 - `suppress` is Python: an interrupt would leave the lock held
                self._lock.release()
            except RuntimeError:  # we did not get the lock in time
                pass

    def _is_connected(self) -> bool:
        return self._redis is not None  # the flusher connects

    def _read_hashes(self, keys: Sequence[str], until: float) -> list[list[bytes]]:
        """Read some hashes in one round trip, until `until`; names and values alternate."""
        from redis.exceptions import RedisError

        from memorybus.redis.cluster import client_for_key
        from memorybus.redis.connect import translate_redis_error

        redis = self._redis
        if redis is None:
            raise LogUnavailable(f"{keys[0]}: not connected")
        if self._is_asking:  # by a signal handler, between our own question and its reply
            raise LogUnavailable(f"{keys[0]}: this thread is in the middle of a read")
        try:
            self._is_asking = True
            # The connection itself: a client's bookkeeping costs a tenth of this whole call.
            connections: list[Any] = [client_for_key(redis, key).connection for key in keys]
            asked: dict[Any, list[bytes]] = {}
            for connection, key in zip(connections, keys, strict=True):
                asked.setdefault(connection, []).append(_pack_hgetall(key))
            for connection, commands in asked.items():
                self._limit_socket(connection, until - self._clock.monotonic())
                # In one piece: with two, the server may wake twice and answer twice.
                connection.send_packed_command([b"".join(commands)])
            return [connection.read_response() for connection in connections]
        except BaseException as error:  # an interrupt leaves a reply behind as well
            self._drop_connection()
            self.wants_connection = True
            if isinstance(error, RedisError | OSError):
                raise translate_redis_error(error, keys[0]) from error
            raise
        finally:
            self._is_asking = False

    def _limit_socket(self, connection: Any, left: float) -> None:
        """Set the socket's time-out to the time left, or to the deadline if nearly all is left."""
        whole = self._settings.prefetch_deadline
        wanted = whole if left > whole * _NEARLY else max(_LEAST, left)
        if wanted != self._limited.get(connection):
            connection.update_current_socket_timeout(wanted)
            self._limited[connection] = wanted

    def connect(self) -> None:
        """Connect if need be, on the flusher's thread; the agent's only reads.

        Raises:
            LogUnavailable: no connection.
        """
        from memorybus.redis.connect import connect_redis

        if not self.wants_connection:
            return
        self._check_process()
        redis = connect_redis(self._settings, single=True)
        with self._lock:
            self._limited.clear()
            self._redis, self.wants_connection = redis, False
            self._connected.wake_all()

    def _check_process(self) -> None:
        """After a fork, drop connection and lock: they are the parent's, and replies would mix."""
        if self._pid != os.getpid():
            self._redis, self._lock, self.wants_connection = None, threading.RLock(), True
            self._connected, self._is_asking = Waiters(), False
            self._pid = os.getpid()  # last: another thread must not go on with the parent's

    def _drop_connection(self) -> None:
        """Drop the connection, so that a late reply is not read as the answer to the next read."""
        if self._redis is not None:
            self._redis.close()
            self._redis = None

    def in_provider_order(
        self, lines: Mapping[str, tuple[str, ...]]
    ) -> list[tuple[str, tuple[str, ...]]]:
        """Return providers with their lines in the order of a memory block."""
        last = len(self._order)
        return sorted(lines.items(), key=lambda pair: (self._order.get(pair[0], last), pair[0]))

    def close(self) -> None:
        """Close the connection."""
        self._check_process()
        with self._lock:
            self._drop_connection()


@lru_cache(maxsize=4_096)
def _pack_hgetall(key: str) -> bytes:
    """Return the command in Redis's protocol; redis-py needs more time for this than Redis.

    https://redis.io/docs/latest/develop/reference/protocol-spec
    """
    name = key.encode()
    return b"*2\r\n$7\r\nHGETALL\r\n$%d\r\n%b\r\n" % (len(name), name)


def _pairs(fields: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(fields[::2], fields[1::2], strict=True)


def _drop_retracted(
    results: dict[str, WarmResult], marks: Mapping[bytes, bytes]
) -> dict[str, WarmResult]:
    """Return the results that were made after their owner last took something back."""
    if not marks:
        return results
    return {
        name: result
        for name, result in results.items()
        if marks.get(name.encode(), b"").decode() == result.mark
    }
