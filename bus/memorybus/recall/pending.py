"""Requests for recalls that wait until the events before them are in the log."""

import logging
import random
import threading
from typing import Protocol

from memorybus.clock import Clock
from memorybus.concurrency.backoff import backoff
from memorybus.errors import LogError
from memorybus.recall.model import Ask

_log = logging.getLogger("memorybus")
MAX_ASKS = 1_024  # how many requests may wait; beyond it the oldest is dropped and counted (G10)
REPLY_TIMEOUT = 0.25
"""Seconds that the jobs' Redis may take to reply, and that requests may hold up the events."""

_FIRST_PAUSE = 0.5
"""The longest pause after the first failure, in seconds; further failures double it, up to five."""


_Key = tuple[type[Ask], str]


class RecallSender(Protocol):
    """Sends a request; `requester.RecallRequester` is one."""

    def ask(self, ask: Ask) -> None: ...


class PendingAsks:
    """The newest request of each session and kind, in the order they came. Thread-safe."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self.dropped = 0  # how many requests were dropped at the bound
        self._clock = clock
        self._rng = rng
        self._again_at = 0.0
        self._failures = 0
        self._asks: dict[_Key, Ask] = {}
        self._lock = threading.Lock()

    def put(self, ask: Ask) -> None:
        with self._lock:
            self._asks.pop(_key(ask), None)
            self._asks[_key(ask)] = ask
            self._drop_oldest()

    def send(self, asker: RecallSender, sequence: int) -> None:
        """Send the requests that had to wait for events up to `sequence`, which are in the log.

        The Redis of the recalls may be another server. Even if it is away, hangs or is busy, the
        events wait no longer than `REPLY_TIMEOUT` and one request. Requests that were not sent are
        kept for the next call, unless newer ones replace them. After a failure there is a pause.
        """
        now = self._clock.monotonic()
        if now < self._again_at:
            return
        due = self._take_due(sequence)
        until = now + REPLY_TIMEOUT
        try:
            while due and self._clock.monotonic() < until:
                asker.ask(due[0])
                due.pop(0)
                self._failures = 0
        except LogError as error:
            self._pause(error)
        self._put_back(due)

    def _pause(self, error: LogError) -> None:
        _log.log(logging.DEBUG if self._failures else logging.WARNING, "recall: %s", error)
        pause = backoff(self._failures, self._rng, first=_FIRST_PAUSE)
        self._again_at = self._clock.monotonic() + pause
        self._failures += 1

    def _take_due(self, sequence: int) -> list[Ask]:
        with self._lock:
            due = [ask for ask in self._asks.values() if ask.sequence <= sequence]
            for ask in due:
                del self._asks[_key(ask)]
        return due

    def _put_back(self, asks: list[Ask]) -> None:
        with self._lock:
            self._asks = {_key(ask): ask for ask in asks} | self._asks
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._asks) > MAX_ASKS:
            del self._asks[next(iter(self._asks))]
            self.dropped += 1


def _key(ask: Ask) -> _Key:
    return type(ask), ask.slot
