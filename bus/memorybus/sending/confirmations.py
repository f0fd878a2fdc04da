"""Who waits to be told how safe its events are (G1).

What Redis took it may have lost since, and nobody need have noticed: a connection that breaks is
made again. So each who waits is answered by what Redis says when it is asked after them.
"""

from collections.abc import Callable, Sequence

from memorybus.concurrency.wakeup import Waiters


class Flush:
    """One who waits.

    Attributes:
        sequence: the last event it asks about.
        replicated: that Redis has it is not enough.
        met: it has what it asked for.
    """

    def __init__(self, sequence: int, replicated: bool) -> None:
        """Nothing is known yet."""
        self.sequence = sequence
        self.replicated = replicated
        self.met = False


class Flushes:
    """All who wait. Any thread may wait; one answers."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: set[Flush] = set()
        self._answered = Waiters()

    def wait(self, flush: Flush, timeout: float, wake: Callable[[], None]) -> bool:
        """Wait for an answer, at most so many seconds; `wake` who answers."""
        try:
            self._waiting.add(flush)
            wake()
            return self._answered.wait_for(lambda: flush.met, timeout)
        finally:
            self._waiting.discard(flush)

    def due(self, upto: int, *, replicated: bool) -> list[Flush]:
        """Return those of one of the two kinds whose events, up to `upto`, Redis took."""
        waiting = tuple(self._waiting)
        return [one for one in waiting if one.sequence <= upto and one.replicated == replicated]

    def answer(self, asked: Sequence[Flush], upto: int) -> None:
        """Tell those who asked for events up to `upto` that they are as safe as they wanted."""
        for flush in asked:
            if flush.sequence <= upto:
                flush.met = True
                self._waiting.discard(flush)
        self._answered.tell()
