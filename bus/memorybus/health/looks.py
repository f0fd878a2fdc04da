"""The status for all views, read at most once a second."""

import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.health.finding import Finding
from memorybus.health.monitor import (
    SpoolStatus,
    Status,
    StatusWithLanes,
    read_with_lanes,
    spool_status,
)
from memorybus.health.providers import LaneFigures
from memorybus.health.verdict import Verdict, judge_status, unknown_verdict, unreachable_verdict

KEPT = 1.0
"""Seconds for which one look answers all callers."""


class Look(msgspec.Struct, frozen=True):
    """The state of the bus, as one look found it.

    Attributes:
        at_ms: when we looked (wall time, milliseconds since the Unix epoch).
        status: the figures; None if Redis could not be read.
        verdict: what is wrong, and how badly.
        lanes: the lanes of each instance, by partition.
    """

    at_ms: int
    status: Status | None
    verdict: Verdict
    lanes: dict[str, list[LaneFigures]] = {}

    @property
    def findings(self) -> list[Finding]:
        """What is wrong, the worst first."""
        return self.verdict.findings


class LookCache:
    """Reads the status for all callers, who may be on any thread.

    Args:
        settings: the settings of the log.
        clock: time.
        read: reads the status.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        read: Callable[[Settings], StatusWithLanes] = read_with_lanes,
    ) -> None:
        """Look at nothing yet."""
        self._settings = settings
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        self._look: Look | None = None
        self._until = float("-inf")

    def look(self) -> Look:
        """Return a look that is at most a second old; if Redis is away, its verdict says so."""
        with self._lock:
            if self._look is None or self._clock.monotonic() >= self._until:
                self._look = self._take_look()
                self._until = self._clock.monotonic() + KEPT
            return self._look

    def forget(self) -> None:
        """Have the next call look again, because something was changed."""
        with self._lock:
            self._look = None

    def _take_look(self) -> Look:
        now_ms = self._clock.now_ms()
        try:
            sight = self._read(self._settings)
        except LogUnavailable as error:
            return Look(now_ms, None, unreachable_verdict(error, self._spool()))
        except MemoryBusError as error:
            return Look(now_ms, None, unknown_verdict(error))
        found = judge_status(sight.status, self._settings.providers, now_ms)
        return Look(now_ms, sight.status, found, sight.lanes)

    def _spool(self) -> SpoolStatus:
        with suppress(MemoryBusError):
            return spool_status(self._settings)
        return SpoolStatus(0, 0, None)
