"""Decides which workers are alive, by our own clock.

The server dates the heartbeats, and its clock may jump. So a worker is alive while its heartbeat
changes. The age of a heartbeat by the server's clock counts only when the worker is first seen.
"""

from collections.abc import Iterable, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.registry.roster import WorkerInfo


class _Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat, and the time when it was written, by our own clock (monotonic)."""

    beat: int
    at: float


class Heartbeats:
    """The heartbeats that one worker has seen. Belongs to one thread."""

    def __init__(self, clock: Clock, beat: float) -> None:
        self._clock = clock
        self._beat = beat
        self._known: dict[str, _Heartbeat] = {}

    def note(self, workers: Iterable[WorkerInfo], now_ms: int) -> None:
        self._known = {worker.id: self._heartbeat(worker, now_ms) for worker in workers}

    def _heartbeat(self, worker: WorkerInfo, now_ms: int) -> _Heartbeat:
        last = self._known.get(worker.id)
        if last is not None and last.beat == worker.heartbeat_at:
            return last
        age = abs(now_ms - worker.heartbeat_at) / 1_000
        if last is not None:
            age = min(age, self._beat)  # it has changed since the last call
        return _Heartbeat(worker.heartbeat_at, self._clock.monotonic() - age)

    def silent(self, workers: Sequence[WorkerInfo], seconds: float) -> list[WorkerInfo]:
        """Return those of `workers` whose heartbeat has not changed for `seconds`."""
        now = self._clock.monotonic()
        return [worker for worker in workers if now - self._known[worker.id].at > seconds]
