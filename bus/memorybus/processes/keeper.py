"""Keeps one child process running: when it ends, another one is started after a pause."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.backoff import LONGEST_RESTART, restart_delay
from memorybus.errors import MemoryBusError
from memorybus.processes import signals
from memorybus.processes.child import ChildProcess, wait_for_any

Start = Callable[[], ChildProcess]


class Death(msgspec.Struct, frozen=True):
    """How a child ended, or why it could not be started."""

    child: ChildProcess | None  # the child with its reports; None if it could not be started
    code: int  # its exit code
    why: MemoryBusError | OSError | None  # the reason, as far as it is known
    delay: float  # seconds until another one is started

    def __str__(self) -> str:
        if self.child is None:
            return f"cannot be started: {self.why}"
        return f"ended (exit code {self.code})" + (f": {self.why}" if self.why else "")


class Keeper:
    """Keeps one child running. Belongs to one thread."""

    def __init__(
        self, start: Start, clock: Clock = SYSTEM, longest: float = LONGEST_RESTART
    ) -> None:
        self.child: ChildProcess | None = None  # the running child; None during a pause
        self._start = start
        self._clock = clock
        self._longest = longest
        self._delay = self._born_at = 0.0
        self._start_at = float("-inf")

    def poll(self) -> Death | None:
        """Start a child when it is time; return how it ended, if it did so since the last poll."""
        if self.child is None:
            return self._start_child() if self._clock.monotonic() >= self._start_at else None
        code = self.child.listen()
        if code is None:
            return None
        ended, self.child = self.child, None
        ended.close()
        return self._pause(ended, code, ended.error)

    def _start_child(self) -> Death | None:
        self._born_at = self._clock.monotonic()
        try:
            self.child = self._start()
        except OSError as error:
            return self._pause(None, 0, error)
        return None

    def _pause(
        self, child: ChildProcess | None, code: int, why: MemoryBusError | OSError | None
    ) -> Death:
        now = self._clock.monotonic()
        self._delay = min(self._longest, restart_delay(now - self._born_at, self._delay))
        self._start_at = now + self._delay
        return Death(child, code, why, self._delay)

    def replace(self, start: Start) -> ChildProcess | None:
        """Use `start` from now on; return the present child, which now belongs to the caller."""
        present, self.child = self.child, None
        self._start = start
        self._delay, self._start_at = 0.0, float("-inf")
        return present

    def rest(self, timeout: float) -> None:
        """Wait until the child reports or ends, or must be started; at most `timeout` seconds."""
        if self.child is None:
            pause = self._start_at - self._clock.monotonic()
            self._clock.sleep(max(0.0, min(timeout, pause)))
        else:
            wait_for_any([self.child], timeout)


@contextmanager
def keeping(start: Start, clock: Clock = SYSTEM) -> Iterator[Keeper]:
    keeper = Keeper(start, clock)
    try:
        yield keeper
    finally:
        child = keeper.child
        if child is not None:
            with signals.deferred(child.terminate):
                child.stop()
