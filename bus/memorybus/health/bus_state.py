"""Reads the status for all views, at most once a second."""

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

CACHE_SECONDS = 1.0
"""Seconds for which one reading answers all callers."""


class BusState(msgspec.Struct, frozen=True):
    """The state of the bus at one moment.

    Attributes:
        at_ms: when it was read (wall time, milliseconds since the Unix epoch).
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

    def without_quotations(self) -> "BusState":
        """Return the state without what others wrote: errors of backends, reasons of operators."""
        return msgspec.structs.replace(self, verdict=self.verdict.without_quotations())


class BusStateCache:
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
        """Read nothing yet."""
        self._settings = settings
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        self._known: BusState | None = None
        self._until = float("-inf")

    def read(self) -> BusState:
        """Return a state at most a second old; if Redis is away, its verdict says so."""
        with self._lock:
            if self._known is None or self._clock.monotonic() >= self._until:
                self._known = self._read_anew()
                self._until = self._clock.monotonic() + CACHE_SECONDS
            return self._known

    def forget(self) -> None:
        """Have the next call read again, because something was changed."""
        with self._lock:
            self._known = None

    def _read_anew(self) -> BusState:
        now_ms = self._clock.now_ms()
        try:
            reading = self._read(self._settings)
        except LogUnavailable as error:
            return BusState(now_ms, None, unreachable_verdict(error, self._spool()))
        except MemoryBusError as error:
            return BusState(now_ms, None, unknown_verdict(error))
        found = judge_status(reading.status, self._settings.providers, now_ms)
        return BusState(now_ms, reading.status, found, reading.lanes)

    def _spool(self) -> SpoolStatus:
        with suppress(MemoryBusError):
            return spool_status(self._settings)
        return SpoolStatus(0, 0, None)
