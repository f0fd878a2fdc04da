"""Recalls to ask for, until the events before them are in the log. Thread-safe and bounded."""

import logging
import random
import threading
from typing import Protocol

from memorybus.clock import Clock
from memorybus.concurrency.backoff import backoff
from memorybus.errors import LogError

_log = logging.getLogger("memorybus")

MAX_ASKS = 1_024
"""Requests that may wait; at the bound the oldest is dropped and counted (G10)."""

PATIENCE = 0.25
"""Seconds that the jobs' Redis may take for a reply, and that asking may hold up the events."""

_FIRST_PAUSE = 0.5
"""Seconds, at most, after the first failure; each further one doubles them, up to five."""


class Ask(Protocol):
    """A recall to ask for once the events before it are in the log."""

    @property
    def slot(self) -> str:
        """The session's slot: the newest request of its kind wins."""
        ...

    @property
    def sequence(self) -> int:
        """The spool's sequence that must be in the log before."""
        ...


_Key = tuple[type[Ask], str]


class RecallSender(Protocol):
    """Sends a request; `requester.RecallRequester` is one."""

    def ask(self, ask: Ask) -> None:
        """Send it.

        Raises:
            LogError: not now.
        """
        ...


class PendingAsks:
    """The newest request of each session and kind, in the order they came.

    Attributes:
        dropped: how many were given up at the bound.
    """

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        """Hold nothing."""
        self.dropped = 0
        self._clock = clock
        self._rng = rng
        self._again_at = 0.0
        self._failures = 0
        self._asks: dict[_Key, Ask] = {}
        self._lock = threading.Lock()

    def put(self, ask: Ask) -> None:
        """Keep a request; an older one of the same kind and slot is forgotten."""
        with self._lock:
            self._asks.pop(_key(ask), None)
            self._asks[_key(ask)] = ask
            self._drop_oldest()

    def send(self, asker: RecallSender, sequence: int) -> None:
        """Ask for what follows events that are in the log up to `sequence`.

        The recalls' Redis may be another one; whether it is away, hangs or has much to do, the
        events wait for `PATIENCE` and one request at most. What was not asked is kept, unless
        newer requests come, and asked again; after a failure, not before a pause.
        """
        now = self._clock.monotonic()
        if now < self._again_at:
            return
        due = self._take_due(sequence)
        until = now + PATIENCE
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
        """Put back what was not asked, in front of what has come since."""
        with self._lock:
            self._asks = {_key(ask): ask for ask in asks} | self._asks
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._asks) > MAX_ASKS:
            del self._asks[next(iter(self._asks))]
            self.dropped += 1


def _key(ask: Ask) -> _Key:
    """Return what a newer request replaces: to carry answers over is no question."""
    return type(ask), ask.slot
