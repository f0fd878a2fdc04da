"""The warm cache, from which an agent reads the memories that were recalled for its sessions.

No failure and no delay of Redis reaches the agent: a read returns within its deadline, if necessary
with nothing (G9).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.wakeup import Waiters
from memorybus.config.settings import Settings
from memorybus.errors import LogError, LogUnavailable
from memorybus.recall.model import WarmResult, warm_results
from memorybus.receipt import LogState
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from memorybus.recall.hash_reader import HashReader

_log = logging.getLogger("memorybus")

_POLL_SECONDS = 0.01
_LATE_ANSWER_SECONDS = 0.05
"""Seconds between looks for an answer; seconds that other providers get after the first answer."""


class WarmCache:
    """Reads warm results over one connection, in one round trip. Any thread may call it.

    Args:
        settings: see `Settings`; `prefetch_deadline` bounds every read.
        clock: time.
        log_state: returns what the flusher knows of Redis.
    """

    def __init__(self, settings: Settings, clock: Clock, log_state: Callable[[], LogState]) -> None:
        """Read nothing until `connect`."""
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
        self.failures = 0

    def sections(self, owner: str, slot: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return the warm lines of a slot: the providers in the order of a memory block.

        Args:
            owner: the owner who asks (`keys.owner_slot`).
            slot: the slot.
        """
        results = self.read(owner, [slot])
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
                answered, until = True, min(until, self._clock.monotonic() + _LATE_ANSWER_SECONDS)
            self._clock.sleep(_POLL_SECONDS)

    def read(self, owner: str, slots: Sequence[str]) -> dict[str, WarmResult]:
        """Return the warm results of the first slot that has any, by provider.

        Results that may hold what their owner has taken back since are left out. The dict is empty
        if there are none, or if Redis did not answer in time (counted in `failures`).
        """
        self._check_process()
        until = self._clock.monotonic() + self._settings.prefetch_deadline
        if self._reader is None and self._log_state() != "down":
            wait = 0.0 if self._waited else self._settings.prefetch_deadline
            self._waited = not self._connected.wait_for(self._is_connected, wait)
            if self._waited and self._log_state() == "unknown":
                return {}  # the process has just begun, and nothing has failed yet
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
            self._waited = True
            _log.debug("prefetch: %s", error)
            return {}
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
        """Connect if need be, on the flusher's thread; the agent's only reads.

        Raises:
            LogUnavailable: no connection.
        """
        from memorybus.recall.hash_reader import HashReader

        if not self.wants_connection:
            return
        self._check_process()
        reader = HashReader(self._settings)
        if self._waited:
            reader.ping()
        with self._lock:
            self._reader, self._waited, self.wants_connection = reader, False, False
            self._connected.wake_all()

    def _check_process(self) -> None:
        """After a fork, drop connection and lock: they are the parent's, and replies would mix."""
        if self._pid != os.getpid():
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
        """Return providers with their lines in the order of a memory block."""
        known = [(name, lines[name]) for name in self._order if name in lines]
        if len(known) == len(lines):
            return known
        return known + sorted(pair for pair in lines.items() if pair[0] not in self._order)

    def close(self) -> None:
        """Close the connection."""
        self._check_process()
        with self._lock:
            self._drop_connection()


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
