"""The isolation probe: a worker tries one suspected event at a time alone (G6)."""

import threading

from memorybus.clock import Clock

from memorybus_workers.lanes.leases import Lease

RETRY_SECONDS = 0.02
"""Seconds after which a lane that was refused asks again."""

_PRECEDENCE_SECONDS = 0.1
"""Seconds after which a lane that waits has precedence over one that asks for the first time."""

_WAITER_TTL_SECONDS = 1.0
"""Seconds after which a lane that has not asked again does not count as waiting any more."""


class IsolationProbe:
    """The event that a worker tries alone now, if there is one. Shared by its providers' threads.

    On a lane whose owners died, each event is counted before it is tried. If the worker ends during
    the try, the event is blamed. With two such tries at once one event could be blamed for what the
    other did, so there is only one at a time in a worker. This class never blocks: a thread that is
    refused continues with its other lanes. A call that hangs keeps other events from being tried
    until it is abandoned; the try of a lane that lost its lease no longer counts.

    One case remains. Meanwhile the worker may be ended by a call that is not tried alone: that of a
    lane whose owners lived, of a dead letter that is applied again, or an abandoned call. Then the
    event is blamed wrongly. It is parked only after `isolated_try.MAX_KILLS` such coincidences
    without any progress of its lane in between.
    """

    def __init__(self, clock: Clock) -> None:
        """Start without a try."""
        self._clock = clock
        self._lock = threading.Lock()
        self._tried: tuple[Lease, int] | None = None
        self._waiting: dict[str, tuple[float, float]] = {}

    def begin(self, lease: Lease, n: int) -> bool:
        """Say whether an event may be tried now; if so, the caller must call `end` afterwards.

        Args:
            lease: the lease of the event's lane.
            n: the event's dense number.
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
        """Say whether another lane that asked before this one has waited for long."""
        self._waiting = {
            key: (first, last)
            for key, (first, last) in self._waiting.items()
            if now - last < _WAITER_TTL_SECONDS
        }
        firsts = (first for first, _ in self._waiting.values())
        return any(first < since and now - first >= _PRECEDENCE_SECONDS for first in firsts)

    def is_trying(self, lease: Lease, n: int) -> bool:
        """Say whether this event is the one that is tried now."""
        tried = self._tried
        return tried is not None and tried[0] is lease and tried[1] == n

    def end(self, lease: Lease, n: int) -> None:
        """Note that the try of an event is over; a second time changes nothing."""
        with self._lock:
            if self.is_trying(lease, n):
                self._tried = None
