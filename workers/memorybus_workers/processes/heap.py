"""Gives memory that was freed back to the system.

The C library keeps freed memory: after a catch-up of large batches the heap has holes, and the
resident memory of a worker grows by some MB an hour although nothing in it does. glibc returns
whole pages when it is asked to.
"""

import ctypes
from collections.abc import Callable
from typing import Final

from memorybus.clock import Clock

TRIM_INTERVAL_SECONDS = 60.0
"""Seconds between two requests to the C library; each takes some milliseconds."""


_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_MMAP_THRESHOLD_BYTES = 128 << 10
"""Larger blocks get their own mapping; glibc begins with this value, but would raise it."""


def share_one_heap() -> bool:
    """Let all threads share one heap, and map large blocks apart; call it before threads start.

    By default glibc gives each thread a heap with holes of its own (mallopt(3)). Sharing costs
    nothing here: a thread allocates while it holds the interpreter's lock.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(mallopt(_ARENA_MAX, 1)) and bool(mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))


def find_trimmer() -> Callable[[], None]:
    """Return a function that gives memory back; it does nothing without ``malloc_trim``."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # another C library
        return lambda: None

    def ask() -> None:
        trim(ctypes.c_size_t(0))

    return ask


class Heap:
    """Gives memory back now and then. Belongs to one thread."""

    def __init__(self, clock: Clock, trim: Callable[[], None]) -> None:
        self._clock = clock
        self._trim = trim
        self._at = clock.monotonic() + TRIM_INTERVAL_SECONDS

    def trim_if_due(self) -> None:
        if self._clock.monotonic() >= self._at:
            self._at = self._clock.monotonic() + TRIM_INTERVAL_SECONDS
            self._trim()
