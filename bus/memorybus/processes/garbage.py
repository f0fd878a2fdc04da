"""Spares our processes most of the work of Python's garbage collector."""

import atexit
import gc

_COLLECTION_THRESHOLD = 50_000
"""A collection begins after so many objects were made and not freed; Python's own number is 700."""


def collect_seldom() -> None:
    """Collect garbage less often; a new process calls this before it loads its modules.

    With Python's own threshold the collector took an eighth of the time of loading them, and ran
    several hundred times a second while a lane caught up.
    """
    gc.set_threshold(_COLLECTION_THRESHOLD)


def freeze_heap() -> None:
    """Exclude all present objects from garbage collection, since modules and their objects stay."""
    gc.freeze()


def end_without_collecting() -> None:
    """Let this process end without a last collection: the system takes all its memory at once."""
    atexit.register(freeze_heap)
