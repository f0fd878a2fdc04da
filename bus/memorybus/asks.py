"""Recalls to ask for, until the events before them are in the log. Thread-safe and bounded."""

import threading
from typing import Protocol

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


class Asks:
    """The newest request of each session, in the order they came.

    Attributes:
        dropped: how many were given up at the bound.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        self.dropped = 0
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

    def take(self, sequence: int) -> list[Ask]:
        """Take out the requests whose events are in the log up to `sequence`."""
        with self._lock:
            due = [ask for ask in self._asks.values() if ask.sequence <= sequence]
            for ask in due:
                del self._asks[ask.slot]
        return due

    def put_back(self, asks: list[Ask]) -> None:
        """Keep requests that could not be asked, unless a newer one came meanwhile."""
        with self._lock:
            for ask in asks:
                self._asks.setdefault(ask.slot, ask)
