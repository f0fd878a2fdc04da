"""Gives memory that was freed back to the system, and spares the garbage collector work.

The C library keeps freed memory: after a catch-up of large batches the heap has holes, and the
resident memory of a worker grows by some MB an hour although nothing in it does. glibc returns
whole pages when it is asked to.
"""

import ctypes
import gc
from collections.abc import Callable
from typing import Final

from memorybus.clock import Clock

EVERY = 60.0
"""Seconds between two such requests; each takes some milliseconds."""


_ARENA_MAX: Final = -8
_MMAP_THRESHOLD: Final = -3
_YOUNG = 10_000
"""Objects made and not freed since the last collection, at which one begins; Python's are 700."""

_BIG = 128 << 10
"""Bytes from which a block gets a mapping of its own: glibc's first value, which it would raise."""


def share_one_heap() -> bool:
    """Let all threads share one heap, and map large blocks apart; call it before threads start.

    By default glibc gives each thread a heap with holes of its own, and raises the size from which
    blocks are mapped apart (mallopt(3)). Sharing costs nothing here: a thread allocates while it
    holds the interpreter's lock.

    Returns:
        Whether the C library has such settings.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    return bool(mallopt(_ARENA_MAX, 1)) and bool(mallopt(_MMAP_THRESHOLD, _BIG))


def collect_seldom() -> None:
    """Collect garbage more seldom; for a new process, before it loads its modules.

    Modules stay, and a batch makes hundreds of objects that go again without a collector's help.
    With Python's own threshold the collector ran 125 times while modules were loaded, which took an
    eighth of that time, and several hundred times a second in a catch-up.
    """
    gc.set_threshold(_YOUNG)


def freeze_heap() -> None:
    """Spare what is there now from garbage collection: modules and what they made; it stays."""
    gc.freeze()


def find_trimmer() -> Callable[[], None]:
    """Return a function that gives memory back; it does nothing without ``malloc_trim``."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return lambda: None

    def ask() -> None:
        trim(ctypes.c_size_t(0))

    return ask


class Heap:
    """Gives memory back now and then. Belongs to one thread.

    Args:
        clock: time.
        trim: gives memory back.
    """

    def __init__(self, clock: Clock, trim: Callable[[], None]) -> None:
        """Do nothing yet."""
        self._clock = clock
        self._trim = trim
        self._at = clock.monotonic() + EVERY

    def trim_if_due(self) -> None:
        """Give memory back if it is time."""
        if self._clock.monotonic() >= self._at:
            self._at = self._clock.monotonic() + EVERY
            self._trim()
