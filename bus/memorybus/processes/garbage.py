"""Spares our processes most of the work of Python's garbage collector.

Most objects are freed when nothing refers to them any more; the collector finds only cycles. The
objects that a process loads at its beginning stay, so searching them again and again finds nothing.
"""

import atexit
import gc

_COLLECTION_THRESHOLD = 50_000
"""A collection begins after so many objects were made and not freed; Python's own number is 700."""


def collect_seldom() -> None:
    """Collect garbage less often; a new process calls this before it loads its modules.

    Modules stay, and a batch makes hundreds of objects that are freed without the collector. With
    Python's own threshold the collector ran 125 times while modules were loaded, which took an
    eighth of that time, and several hundred times a second while a lane caught up.
    """
    gc.set_threshold(_COLLECTION_THRESHOLD)


def freeze_heap() -> None:
    """Exclude all present objects from garbage collection, since modules and their objects stay."""
    gc.freeze()


def end_without_collecting() -> None:
    """Let this process end without a last collection: the system takes all its memory at once.

    Python would look at every object it has, twice, which is a tenth of a short command's time.
    """
    atexit.register(freeze_heap)
