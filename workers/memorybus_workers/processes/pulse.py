"""Knows whether the main loop of a process still turns, and whether the process has started."""

import threading

from memorybus.clock import Clock

STUCK_SECONDS = 30.0
"""Seconds without a turn after which the loop counts as stuck: a turn takes far less."""


class Pulse:
    """Knows when the main loop of this process last turned; any thread may ask."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard = clock.monotonic()
        self._ready = threading.Event()

    def note_ready(self) -> None:
        """Note that everything has started."""
        self._ready.set()

    def note_turn(self) -> None:
        """Note a turn of the loop."""
        self._heard = self._clock.monotonic()

    def note_end(self) -> None:
        """Note that the end has begun."""
        self._ready.clear()

    def lives(self) -> bool:
        """Say whether the loop has turned within `STUCK_SECONDS`."""
        return self._clock.monotonic() - self._heard <= STUCK_SECONDS

    def is_ready(self) -> bool:
        """Say whether everything has started, and the end has not begun."""
        return self._ready.is_set()
