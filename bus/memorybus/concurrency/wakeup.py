"""Signals from one thread to another that an interrupt cannot break.

`threading.Event` and `threading.Condition` are Python code around a lock: a KeyboardInterrupt
inside `set`, or at the start of a `with`, leaves the lock taken, and the next thread waits for
ever: an agent that is told to end would not end (G9). A method of a bare lock, or of a set, is one
step.

`SimpleQueue.get` is no alternative: if its time-out passes between its first look and its wait,
CPython 3.11 takes the negative rest for "wait for ever".
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from memorybus.clock import SYSTEM


class Wake:
    """Wakes one thread; several signals before it wakes count as one."""

    def __init__(self) -> None:
        self._unset = threading.Lock()  # locked while there is no signal
        self._unset.acquire()

    def set(self) -> None:
        """Wake the thread that waits, or that waits next."""
        if self._unset.locked():  # otherwise it is set already
            with suppress(RuntimeError):  # or another thread has just set it
                self._unset.release()

    def wait(self, timeout: float) -> None:
        """Wait for a signal for at most `timeout` seconds, and take it."""
        self._unset.acquire(timeout=max(0.0, timeout))


class StopSignal:
    """Tells one thread to end, once and for all."""

    def __init__(self) -> None:
        self._stopped = False
        self._wake = Wake()

    def set(self) -> None:
        self._stopped = True
        self._wake.set()

    def is_set(self) -> bool:
        return self._stopped

    def interrupt(self) -> None:
        """Cut the thread's wait short, or its next one, without telling it to end."""
        self._wake.set()

    def wait(self, timeout: float) -> None:
        """Wait for `timeout` seconds, or until it is told to end."""
        if not self._stopped:
            self._wake.wait(timeout)


class Waiters:
    """Threads that wait for a condition; whoever may have made it true calls `wake_all`."""

    def __init__(self) -> None:
        self._waiting: set[Wake] = set()

    def wake_all(self) -> None:
        for wake in tuple(self._waiting):
            wake.set()

    def wait_for(self, met: Callable[[], bool], timeout: float) -> bool:
        """Wait until `met` returns True, for at most `timeout` seconds; return whether it does."""
        until = SYSTEM.monotonic() + timeout
        wake = Wake()
        self._waiting.add(wake)
        try:
            while not met() and (left := until - SYSTEM.monotonic()) > 0:
                wake.wait(left)
            return met()
        finally:
            self._waiting.discard(wake)
