"""Memory that was freed goes back to the system.

The C library keeps what it was given: after a catch-up of large batches, a lost connection or a
hand-over the heap has holes, and a worker's resident memory creeps up by some MB an hour although
nothing in it grows. glibc gives whole pages back when it is asked to; other libraries need not be.
"""

import ctypes
from collections.abc import Callable
from typing import Final

from memorybus.clock import Clock

EVERY = 60.0
"""Seconds between two times; each takes some milliseconds."""


_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_BIG = 128 << 10
"""Bytes from which a block is a mapping of its own: glibc's first value, which it would raise."""


def hold_together() -> bool:
    """Let all threads share one heap, and blocks of a fixed size have none; before any thread runs.

    glibc gives threads heaps of their own (eight for each core), each with holes of its own, and
    raises the size of what it maps apart with each such block that is freed (mallopt(3)). Only one
    thread at a time allocates here anyway, since it holds the interpreter's lock.

    Returns:
        Whether the C library has such settings.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    return bool(mallopt(_ARENA_MAX, 1)) and bool(mallopt(_MMAP_THRESHOLD, _BIG))


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
