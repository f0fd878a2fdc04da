"""The isolation probe: in a worker one suspected event at a time is tried alone (G6)."""

import threading

from memorybus.clock import Clock

from memorybus_workers.lanes.leases import Lease

AGAIN = 0.02
"""Seconds after which a lane that was refused asks again."""

_FAIR = 0.1
"""Seconds after which a lane that waits has precedence over one that asks for the first time."""

_GONE = 1.0
"""Seconds after which a lane that has not asked again counts as waiting no more."""


class IsolationProbe:
    """The event that a worker tries alone now, if there is one. Shared by its providers' threads.

    On a lane whose owners died, each event is counted before it is tried. If the worker ends during
    the try, the event is blamed. With two such tries at once one event could be blamed for what the
    other did, so there is only one at a time in a worker. Nobody waits here: a thread that is
    refused goes on with its other lanes. A call that hangs keeps the others from being tried until
    it is abandoned; a lane that lost its lease no longer counts.

    One case remains. A call that is not tried alone may end the worker meanwhile: of a lane whose
    owners lived, of a dead letter that is applied again, or an abandoned one. The event is then
    blamed wrongly. It is parked only after `isolated_try.MAX_KILLS` such coincidences without any
    progress of its lane in between.
    """

    def __init__(self, clock: Clock) -> None:
        """Try nothing yet."""
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
        """Say whether another lane asked before this one, and has waited for long."""
        self._waiting = {
            key: (first, last) for key, (first, last) in self._waiting.items() if now - last < _GONE
        }
        firsts = (first for first, _ in self._waiting.values())
        return any(first < since and now - first >= _FAIR for first in firsts)

    def is_trying(self, lease: Lease, n: int) -> bool:
        """Say whether this event is the one that is tried now."""
        tried = self._tried
        return tried is not None and tried[0] is lease and tried[1] == n

    def end(self, lease: Lease, n: int) -> None:
        """Note that the try of an event is over; a second time changes nothing."""
        with self._lock:
            if self.is_trying(lease, n):
                self._tried = None
