"""What is tried alone in a worker: one event at a time, whatever provider it is for (G6)."""

import threading

from memorybus.clock import Clock

from memorybus_workers.lanes.leases import Lease

AGAIN = 0.02
"""Seconds after which who was refused comes back."""

_FAIR = 0.1
"""Seconds after which who waits goes before who comes."""

_GONE = 1.0
"""Seconds after which who has not come back waits no more."""


class IsolationProbe:
    """The event that a worker tries alone now, if there is one. Shared by its providers' threads.

    On a lane whose owners died an event is counted before its try; if the worker ends meanwhile, it
    is blamed. Of two under way one would be blamed for the other's deed, so there is only one.
    Nobody waits here: who is refused goes on with other lanes. Whoever has lost its lease tries
    nothing any more: a call that hangs holds up the others until it is abandoned.

    What remains: a call that is not tried alone may end the worker meanwhile, such as one of a lane
    whose owners lived, of a dead letter that is applied again, or one that was abandoned. The event
    is blamed for that, but it takes `lane.KILLS` such coincidences, with no progress of its lane
    between them, before it is parked.
    """

    def __init__(self, clock: Clock) -> None:
        """Let the first one go."""
        self._clock = clock
        self._lock = threading.Lock()
        self._tried: tuple[Lease, int] | None = None
        self._waiting: dict[str, tuple[float, float]] = {}

    def begin(self, lease: Lease, n: int) -> bool:
        """Say whether an event may be tried now; if so, `end` has to follow.

        Args:
            lease: of its lane.
            n: its dense number.
        """
        with self._lock:
            now = self._clock.monotonic()
            since, _ = self._waiting.get(lease.key, (now, now))
            busy = self._tried is not None and not self._tried[0].lost
            if busy or self._is_behind(since, now):
                self._waiting[lease.key] = (since, now)
                return False
            self._waiting.pop(lease.key, None)
            self._tried = (lease, n)
            return True

    def _is_behind(self, since: float, now: float) -> bool:
        """Say whether somebody else has come before, and waited for long."""
        self._waiting = {
            key: (first, last) for key, (first, last) in self._waiting.items() if now - last < _GONE
        }
        firsts = (first for first, _ in self._waiting.values())
        return any(first < since and now - first >= _FAIR for first in firsts)

    def is_on(self, lease: Lease, n: int) -> bool:
        """Say whether it is this event that is tried."""
        tried = self._tried
        return tried is not None and tried[0] is lease and tried[1] == n

    def end(self, lease: Lease, n: int) -> None:
        """Its try is over; again changes nothing."""
        with self._lock:
            if self.is_on(lease, n):
                self._tried = None
