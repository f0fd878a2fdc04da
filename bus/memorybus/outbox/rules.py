"""What publisher, flusher and sender share: context, counters, and who waits how long for what."""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from memorybus import ids
from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.wakeup import Waiters
from memorybus.config.settings import Settings
from memorybus.ids import NewId, new_rng
from memorybus.testing import CrashPoint, no_crash


class SendingContext(msgspec.Struct, frozen=True):
    """What the publisher, the flusher and their senders share."""

    settings: Settings  # see `Settings`
    clock: Clock = SYSTEM  # tells the time
    rng: random.Random = msgspec.field(default_factory=new_rng)  # makes the jitter of the back-off
    new_id: NewId = ids.new_id  # makes the ids of spools
    crash: CrashPoint = no_crash  # called at the points where fault tests kill the process


class SendCounts(msgspec.Struct):
    """What is counted while a spool is sent."""

    sent: int = 0  # events that Redis took
    rewinds: int = 0  # how often Redis had lost its newest events, and rows were sent again
    conflicts: int = 0  # events that were sent again with another payload; the first one counts
    lost: int = 0  # how often Redis had lost events that this spool no longer holds


class Counters(msgspec.Struct, frozen=True):
    """A process's counters since it connected; the first four are those of `SendCounts`."""

    sent: int
    rewinds: int
    conflicts: int
    lost: int
    prefetch_failures: int  # prompts that were answered without something that they asked for
    # how many of these prompts lacked what: the answer of the provider of this name, which failed,
    # was late or is paused, or ``redis``, which could not be read
    prefetch_failed: Mapping[str, int]
    asks_dropped: int  # requests for recalls that were dropped because too many waited


class ConnectionAttempts:
    """Counts attempts to reach Redis. The flusher makes them; other threads read the counts."""

    def __init__(self) -> None:
        self.in_a_row = 0  # how many attempts have failed since the last success
        self._begun = 0
        self._failed = 0
        self._timed_out = (0, 0.0)

    def begin(self) -> None:
        self._begun += 1

    def fail(self) -> None:
        """Note that the connection failed, at once or later on."""
        self._failed = self._begun
        self.in_a_row += 1

    def succeed(self) -> None:
        self.in_a_row = 0

    def fails_from_now(self) -> Callable[[], bool]:
        """Return a function that says whether an attempt begun after this call has failed."""
        begun = self._begun
        return lambda: self._failed > begun

    def time_left(self, taken: int, timeout: float) -> float:
        """Return how many seconds of a time-out are left after earlier vain waits."""
        before, waited = self._timed_out
        return timeout - waited if taken == before else timeout

    def time_out(self, taken: int, timeout: float) -> None:
        before, waited = self._timed_out
        self._timed_out = (taken, max(timeout, waited) if taken == before else timeout)


class RowRetention:
    """Remembers how far the log was at which time: sent rows stay for a while (G1)."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, cursor: int) -> None:
        if not self._marks or cursor > self._marks[-1][1]:
            self._marks.append((now, cursor))

    def take_upto(self, until: float) -> int:
        """Return the last row that Redis had at the time `until`, and drop its mark; 0 for none."""
        cursor = 0
        while self._marks and self._marks[0][0] <= until:
            cursor = self._marks.popleft()[1]
        return cursor

    def restart(self) -> None:
        """Drop all marks: rows are sent again, and stay for the whole time again."""
        self._marks.clear()


class PendingFlush:
    """One call of `Flusher.flush` that waits."""

    def __init__(self, sequence: int, replicated: bool) -> None:
        self.sequence = sequence  # the last event that it waits for
        self.replicated = replicated  # whether a replica must have the events too
        self.met = False  # whether the events are where the call wants them


class PendingFlushes:
    """All calls of `Flusher.flush` that wait. Any thread may wait; the flusher answers.

    Redis may have lost events that it took without anybody noticing, since a broken connection is
    made again. So each call is answered by what Redis says after the call began (G1).
    """

    def __init__(self) -> None:
        self._waiting: set[PendingFlush] = set()
        self._answered = Waiters()

    def wait(self, flush: PendingFlush, timeout: float, wake: Callable[[], None]) -> bool:
        try:
            self._waiting.add(flush)
            wake()
            return self._answered.wait_for(lambda: flush.met, timeout)
        finally:
            self._waiting.discard(flush)

    def find_due(self, upto: int, *, replicated: bool) -> list[PendingFlush]:
        waiting = tuple(self._waiting)
        return [
            flush for flush in waiting if flush.sequence <= upto and flush.replicated == replicated
        ]

    def answer(self, flushes: Sequence[PendingFlush], upto: int) -> None:
        for flush in flushes:
            if flush.sequence <= upto:
                flush.met = True
                self._waiting.discard(flush)
        self._answered.wake_all()
