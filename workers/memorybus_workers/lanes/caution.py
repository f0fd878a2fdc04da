"""How carefully a lane calls its provider after an owner died, perhaps of an event (G6)."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from memorybus_workers.lanes.leases import Lease

MAX_KILLS: Final = 3
"""At how many deaths an event may have been noted as being called; then it is parked.

Once it was in a batch, and twice alone. After one death alone, a fifth of the runs of a test that
kills workers eighteen times within seconds parked events that had done nothing."""

SMALL_BATCH: Final = 256
"""How many events a careful lane calls its provider for between two notes, and tries alone later
if the owner dies of them."""


class Caution:
    """What is known of the events that may have ended a lane's owners.

    An owner that dies leaves no sign of which event it was busy with, so up to where it may have
    come its successor notes each small batch before it is called. If that one dies, too, the events
    of its last note are the suspects, and each of them is tried alone.
    """

    def __init__(self, suspects: Mapping[int, int], upto: int) -> None:
        self.suspects = dict(suspects)  # by n, at how many deaths an event was noted
        self.calling: dict[int, int] = {}  # what is noted now, each with the death that may follow
        self._upto = upto

    def skip(self, missing: int) -> None:
        """Look further, because so many numbers above the checkpoint are missing in the log."""
        self._upto += missing

    def is_needed(self, n: int) -> bool:
        """Return whether calls are noted while the checkpoint is at `n`."""
        return bool(self.suspects) or n < self._upto

    def batch_size(self, most: int) -> int:
        """Return how many events may go into one batch, of `most` without caution."""
        return 1 if self.suspects else min(most, SMALL_BATCH)

    def begin(self, numbers: Iterable[int]) -> bool:
        """Add the events of the next calls; return whether there is something to note."""
        new = {n: self.suspects.get(n, 0) + 1 for n in numbers if n not in self.calling}
        self.calling.update(new)
        return bool(new)

    def survive(self, numbers: Iterable[int]) -> bool:
        """Clear events whose calls have returned; return whether that has to be noted at once.

        It has to for a suspect, before another event is tried, and when nothing is called any more.
        """
        cleared = [self.suspects.pop(n, 0) for n in numbers if self.calling.pop(n, 0)]
        return bool(cleared) and (any(cleared) or not self.calling)

    def forget(self, is_done: Callable[[int], bool]) -> None:
        for counts in (self.suspects, self.calling):
            for n in [n for n in counts if is_done(n)]:
                del counts[n]


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
