"""Forks: none begins while one of our threads is inside SQLite or an import (G9).

A child cannot leave these places. A SQLite lock that another thread holds at a fork is held for
ever in the child, which then hangs when it opens its spool. A module that another thread was
importing stays half a module there. So our threads mark such places with `ForkGuard`, and a fork
waits until none is inside.
"""

import os
import threading
from functools import cache, partial

from memorybus.clock import SYSTEM

_MAX_WAIT_SECONDS = 1.0
"""Seconds that a fork waits at most: a disk that hangs must not hang the process as well."""

_IMPORT_WAIT_SECONDS = 10.0
"""Seconds that a fork waits for an import, which takes one or two on a busy machine.

If the fork did not wait, the child would lack the module for good. A disk that hangs stops the
import, too.
"""

_POLL_SECONDS = 0.0005


class ForkGuard:
    """A context in which no fork begins; it does not nest. Entering it is cheap.

    An interrupt may end any line of Python, so this is no lock, which it could leave held, but two
    marks, each set or removed in one step: a thread marks itself before it looks for forks, and a
    fork before it looks for threads. A mark that an interrupt leaves behind belongs to its thread:
    no fork of that thread heeds it, and the thread's next visit removes it. Hot code sets its mark
    in `inside` itself, calls `wait` if there are `forks`, and removes the mark. A fork waits at
    most `patience` seconds.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.inside: set[int] = set()  # the threads that are marked
        self.forks: list[None] = []  # as many entries as forks are under way
        self._forking = 0

    def __enter__(self) -> None:
        """Wait until no other thread's fork is under way; then count this thread as a user.

        The forking thread may come here too, through a signal handler or a hook that publishes.
        The wait is bounded, and a fork waits only half as long.
        """
        self.inside.add(threading.get_ident())
        if self.forks:
            self.wait()

    def __exit__(self, *_: object) -> None:
        self.inside.discard(threading.get_ident())

    def wait(self) -> None:
        """Wait until no other thread's fork is under way; this thread is marked already."""
        me, until = threading.get_ident(), SYSTEM.monotonic() + 2 * self.patience
        while self.forks and self._forking != me and SYSTEM.monotonic() < until:
            self.inside.discard(me)
            SYSTEM.sleep(_POLL_SECONDS)
            self.inside.add(me)

    def heed_forks(self) -> None:
        """Make this process's forks wait, for good.

        The hooks that set and remove marks are C functions, because a signal that comes during the
        fork raises in the first line of Python after it. Only the wait is Python.
        """
        os.register_at_fork(before=self._await_users)
        os.register_at_fork(
            before=partial(self.forks.append, None),
            after_in_parent=self.forks.pop,
            after_in_child=self.forks.clear,
        )
        os.register_at_fork(
            after_in_child=self.inside.clear
        )  # the marks belong to threads of the parent

    def _await_users(self) -> None:
        self._forking = me = threading.get_ident()
        until = SYSTEM.monotonic() + self.patience
        while self.inside - {me} and SYSTEM.monotonic() < until:
            SYSTEM.sleep(_POLL_SECONDS)


@cache
def sqlite_guard() -> ForkGuard:
    """Return this process's guard for SQLite; from now on its forks wait for it."""
    return _make_guard(_MAX_WAIT_SECONDS)


@cache
def import_guard() -> ForkGuard:
    """Return this process's guard for imports; from now on its forks wait for it."""
    return _make_guard(_IMPORT_WAIT_SECONDS)


def _make_guard(patience: float) -> ForkGuard:
    guard = ForkGuard(patience)
    guard.heed_forks()
    return guard


class ProcessLock:
    """A lock of which each process has its own: if it is locked at a fork, the child's is free."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def here(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())
