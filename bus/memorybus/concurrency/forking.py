"""Forks: none begins while one of our threads is in a place that a child cannot leave (G9).

Such places are SQLite and an import. SQLite's own locks are the process's: one that another thread
holds at a fork is held for ever in the child, which then hangs when it opens its spool. A module
that another thread was importing stays half a module there. So who is in such a place beside an
agent's thread says so, and a fork waits until nobody is.
"""

import os
import threading
from functools import cache, partial

from memorybus.clock import SYSTEM

_PATIENCE = 1.0
"""Seconds that a fork waits at most: a disk that hangs shall not hang the process as well."""

_IMPORT = 10.0
"""Seconds that it waits for an import, which takes one or two on a busy machine.

The child would be without those modules for good; a disk that hangs stops the program here anyway.
"""

_LOOK = 0.0005


class Undisturbed:
    """A context in which no fork begins. Entering is cheap, also by several threads at once.

    An interrupt may end any line of Python, so nothing here is a lock that it could leave held.
    Two marks instead, each put or taken in one step: a thread marks itself before it looks for
    forks, a fork marks itself before it looks for threads. A mark that an interrupt leaves behind
    is its thread's own: no fork of that thread heeds it, and its next visit takes it away. For the
    same reason the context does not nest.

    Args:
        patience: seconds that a fork waits at most.
    """

    def __init__(self, patience: float) -> None:
        """Disturb nobody yet."""
        self.patience = patience
        self._inside: set[int] = set()
        self._forks: list[None] = []
        self._forking = 0

    def __enter__(self) -> None:
        """Wait for another thread's fork that is under way; then count as a user.

        Who forks may come here too: a signal's handler, or a hook of the program's own, that
        publishes. Nobody waits for ever: a fork waits half as long.
        """
        me, until = threading.get_ident(), SYSTEM.monotonic() + 2 * self.patience
        self._inside.add(me)
        while self._forks and self._forking != me and SYSTEM.monotonic() < until:
            self._inside.discard(me)
            SYSTEM.sleep(_LOOK)
            self._inside.add(me)

    def __exit__(self, *_: object) -> None:
        """Be no user any more."""
        self._inside.discard(threading.get_ident())

    def heed_forks(self) -> None:
        """Make this process's forks wait; for good.

        Only the wait is Python, and runs second. The marks are C: a signal that came during the
        fork raises in the first line of Python after it.
        """
        os.register_at_fork(before=self._await_users)
        os.register_at_fork(
            before=partial(self._forks.append, None),
            after_in_parent=self._forks.pop,
            after_in_child=self._forks.clear,
        )
        os.register_at_fork(after_in_child=self._inside.clear)  # they were threads of the parent

    def _await_users(self) -> None:
        self._forking = me = threading.get_ident()
        until = SYSTEM.monotonic() + self.patience
        while self._inside - {me} and SYSTEM.monotonic() < until:
            SYSTEM.sleep(_LOOK)


@cache
def undisturbed() -> Undisturbed:
    """Return the one of this process for SQLite, which its forks heed from now on."""
    return _heeded(_PATIENCE)


@cache
def importing() -> Undisturbed:
    """Return the one of this process for imports, which its forks heed from now on."""
    return _heeded(_IMPORT)


def _heeded(patience: float) -> Undisturbed:
    one = Undisturbed(patience)
    one.heed_forks()
    return one


class ProcessLock:
    """A lock of which each process has its own: one that is held at a fork is free in the child."""

    def __init__(self) -> None:
        """Nobody holds it."""
        self._locks: dict[int, threading.Lock] = {}

    def here(self) -> threading.Lock:
        """Return this process's, the same one to every thread."""
        return self._locks.setdefault(os.getpid(), threading.Lock())
