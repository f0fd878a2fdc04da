"""The calls that wait until Redis has what they published (G1)."""

from collections.abc import Callable, Sequence

from memorybus.concurrency.wakeup import Waiters


class PendingFlush:
    """One call of `Flusher.flush` that waits.

    Attributes:
        sequence: the last event that it waits for.
        replicated: whether a replica must have the events too.
        met: whether the events are where the call wants them.
    """

    def __init__(self, sequence: int, replicated: bool) -> None:
        """Make a call that has no answer yet."""
        self.sequence = sequence
        self.replicated = replicated
        self.met = False


class PendingFlushes:
    """All calls of `Flusher.flush` that wait. Any thread may wait; the flusher answers.

    Redis may have lost events that it took without anybody noticing, since a broken connection is
    made again. So each call is answered by what Redis says after the call began (G1).
    """

    def __init__(self) -> None:
        """Begin with no waiting call."""
        self._waiting: set[PendingFlush] = set()
        self._answered = Waiters()

    def wait(self, flush: PendingFlush, timeout: float, wake: Callable[[], None]) -> bool:
        """Wait for an answer for at most `timeout` seconds; `wake` wakes the flusher."""
        try:
            self._waiting.add(flush)
            wake()
            return self._answered.wait_for(lambda: flush.met, timeout)
        finally:
            self._waiting.discard(flush)

    def find_due(self, upto: int, *, replicated: bool) -> list[PendingFlush]:
        """Return the waiting calls of one kind whose events, up to `upto`, Redis has taken."""
        waiting = tuple(self._waiting)
        return [one for one in waiting if one.sequence <= upto and one.replicated == replicated]

    def answer(self, flushes: Sequence[PendingFlush], upto: int) -> None:
        """Answer the calls whose events, up to `upto`, are safe."""
        for flush in flushes:
            if flush.sequence <= upto:
                flush.met = True
                self._waiting.discard(flush)
        self._answered.wake_all()
