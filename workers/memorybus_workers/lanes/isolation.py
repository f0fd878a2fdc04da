"""The isolation probe: a worker tries one suspected event at a time alone (G6)."""

import threading

from memorybus_workers.lanes.leases import Lease

RETRY_SECONDS = 0.02  # seconds after which a lane that was refused asks again


class IsolationProbe:
    """The event that a worker tries alone now. Shared by its providers' threads; never blocks.

    If the worker ends during the try, the event is blamed; two such tries at once could blame the
    wrong one. An abandoned call, a dead letter's, or that of a lane whose owners lived may still
    end the worker meanwhile: then the event is blamed wrongly.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tried: tuple[Lease, int] | None = None

    def begin(self, lease: Lease, n: int) -> bool:
        """Whether an event may be tried now; if so, the caller must call `end` afterwards."""
        with self._lock:
            if self._tried is not None and not self._tried[0].lost:
                return False
            self._tried = (lease, n)
            return True

    def end(self, lease: Lease, n: int) -> None:
        """Note that the try of an event is over, if it is the one that is tried."""
        with self._lock:
            if self._tried is not None and self._tried[0] is lease and self._tried[1] == n:
                self._tried = None
