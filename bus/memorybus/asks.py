"""Recalls to ask for, until the events before them are in the log. Thread-safe and bounded."""

import logging
import random
import threading
from typing import Protocol

from memorybus.clock import Clock
from memorybus.errors import LogError
from memorybus.retrying import backoff

_log = logging.getLogger("memorybus")

MAX_ASKS = 1_024
"""Sessions whose request may wait; at the bound the oldest is dropped and counted (G10)."""


class Ask(Protocol):
    """A recall to ask for once the events before it are in the log."""

    @property
    def slot(self) -> str:
        """The session's slot: the newest request of a slot wins."""
        ...

    @property
    def sequence(self) -> int:
        """The spool's sequence that must be in the log before."""
        ...


class Asker(Protocol):
    """Sends a request (see `recall_jobs`)."""

    def ask(self, ask: Ask) -> None:
        """Send it.

        Raises:
            LogError: not now.
        """
        ...


class Asks:
    """The newest request of each session, in the order they came.

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
        self._asks: dict[str, Ask] = {}
        self._lock = threading.Lock()

    def put(self, ask: Ask) -> None:
        """Keep a request; an older one of the same slot is forgotten."""
        with self._lock:
            self._asks.pop(ask.slot, None)
            if len(self._asks) >= MAX_ASKS:
                self._asks.pop(next(iter(self._asks)))
                self.dropped += 1
            self._asks[ask.slot] = ask

    def send(self, asker: Asker, sequence: int) -> None:
        """Ask for what follows events that are in the log up to `sequence`.

        The recalls' Redis may be another one; its absence stops nothing else: the requests are
        kept, unless newer ones come, and asked again after a while.
        """
        if self._clock.monotonic() < self._again_at:
            return
        due = self._taken(sequence)
        try:
            while due:
                asker.ask(due[0])
                due.pop(0)
            self._failures = 0
        except LogError as error:
            self._keep(due)
            _log.log(logging.DEBUG if self._failures else logging.WARNING, "recall: %s", error)
            self._again_at = self._clock.monotonic() + backoff(self._failures, self._rng)
            self._failures += 1

    def _taken(self, sequence: int) -> list[Ask]:
        with self._lock:
            due = [ask for ask in self._asks.values() if ask.sequence <= sequence]
            for ask in due:
                del self._asks[ask.slot]
        return due

    def _keep(self, asks: list[Ask]) -> None:
        with self._lock:
            for ask in asks:
                self._asks.setdefault(ask.slot, ask)
