"""Memory that was freed goes back to the system.

The C library keeps what it was given: after a catch-up of large batches, a lost connection or a
hand-over the heap has holes, and a worker's resident memory creeps up by some MB an hour although
nothing in it grows. glibc gives whole pages back when it is asked to; other libraries need not be.
"""

import ctypes
from collections.abc import Callable

from memorybus.clock import Clock

EVERY = 60.0
"""Seconds between two times; each takes some milliseconds."""


def trimmer() -> Callable[[], None]:
    """Return what asks the C library; nothing happens where it has no ``malloc_trim``."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return lambda: None

    def ask() -> None:
        trim(ctypes.c_size_t(0))

    return ask


class Heap:
    """Asks now and then. Belongs to one thread.

    Args:
        clock: time.
        trim: gives memory back.
    """

    def __init__(self, clock: Clock, trim: Callable[[], None]) -> None:
        """Wait for the first time."""
        self._clock = clock
        self._trim = trim
        self._at = clock.monotonic() + EVERY

    def look(self) -> None:
        """Give memory back if it is time."""
        if self._clock.monotonic() >= self._at:
            self._at = self._clock.monotonic() + EVERY
            self._trim()
