"""Words from one thread to another that an interrupt cannot break.

`threading.Event` and `threading.Condition` are Python around a lock: a KeyboardInterrupt inside
`set`, or as a `with` begins, leaves the lock held, and whoever comes next stands still for ever: an
agent that is told to end would not (G9). Each method of a bare lock, or of a set, is one step.

`SimpleQueue.get` is no way to wait: where its time-out passes between its first look and its wait,
CPython 3.11 takes what is left, a negative number, for ever.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from memorybus.clock import SYSTEM


class Wake:
    """Wakes one thread; several words before it looks are one."""

    def __init__(self) -> None:
        """Nobody was woken yet."""
        self._word = threading.Lock()  # held while there is none
        self._word.acquire()

    def set(self) -> None:
        """Wake who waits, or who waits next."""
        if self._word.locked():  # else it is said already
            with suppress(RuntimeError):  # or was in between
                self._word.release()

    def wait(self, timeout: float) -> None:
        """Wait for a word, at most so many seconds, and take it."""
        self._word.acquire(timeout=max(0.0, timeout))


class Ending:
    """Tells one thread to end; it is said once and for all."""

    def __init__(self) -> None:
        """Go on."""
        self._said = False
        self._wake = Wake()

    def set(self) -> None:
        """Tell it to end."""
        self._said = True
        self._wake.set()

    def is_set(self) -> bool:
        """Say whether it was told."""
        return self._said

    def rouse(self) -> None:
        """Cut short its wait, or its next one, though it need not end."""
        self._wake.set()

    def wait(self, timeout: float) -> None:
        """Wait so many seconds, or until it is told to end."""
        if not self._said:
            self._wake.wait(timeout)


class Waiters:
    """Threads that wait until something has become true; whoever may have made it so tells them."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: set[Wake] = set()

    def tell(self) -> None:
        """Let them look again."""
        for wake in tuple(self._waiting):
            wake.set()

    def wait_for(self, met: Callable[[], bool], timeout: float) -> bool:
        """Wait until `met`, at most so many seconds; return whether it is."""
        until = SYSTEM.monotonic() + timeout
        wake = Wake()
        self._waiting.add(wake)
        try:
            while not met() and (left := until - SYSTEM.monotonic()) > 0:
                wake.wait(left)
            return met()
        finally:
            self._waiting.discard(wake)
