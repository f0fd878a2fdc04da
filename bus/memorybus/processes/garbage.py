"""Spares a process of ours most of the work of Python's garbage collector.

Most objects go when nothing refers to them any more; the collector is for circles. What a process
loads at its beginning stays, so looking through it again and again finds nothing.
"""

import atexit
import gc

_YOUNG = 50_000
"""Objects made and not freed since the last collection, at which one begins; Python's are 700."""


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


def end_without_collecting() -> None:
    """Let this process end without a last collection: the system takes all its memory at once.

    Python would look at every object it has, twice, which is a tenth of a short command's time.
    """
    atexit.register(freeze_heap)
