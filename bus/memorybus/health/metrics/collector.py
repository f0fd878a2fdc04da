"""The collector makes one measurement for all requests within a second."""

import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogError
from memorybus.health.metrics.families import process_metrics, status_metrics
from memorybus.health.monitor import Status, read_status, spool_status

CACHE_SECONDS = 1.0
"""Seconds for which one measurement answers all requests, so that Redis is asked only once."""


class BusCollector(Collector):
    """Shows the status to Prometheus. Any thread may call it.

    Args:
        settings: where the log is.
        clock: time.
        read: reads the status.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock = SYSTEM,
        read: Callable[[Settings], Status] = read_status,
    ) -> None:
        """Read nothing yet."""
        self._settings = settings
        self._clock = clock
        self._read = read
        self._version = version("memorybus")
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._until = float("-inf")

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of a measurement that is no older than a second.

        If Redis is away, only the metrics that do not need it are there, and `memorybus_up` is 0.
        """
        with self._lock:
            if self._clock.monotonic() >= self._until:
                self._metrics = list(self._measure())
                self._until = self._clock.monotonic() + CACHE_SECONDS
            found = self._metrics
        yield from found

    def _measure(self) -> Iterator[Metric]:
        try:
            status = self._read(self._settings)
        except LogError:
            yield from process_metrics(spool_status(self._settings), self._version, up=False)
        else:
            configured = self._settings.providers
            yield from status_metrics(status, self._version, configured, self._clock.now_ms())


def registry(settings: Settings) -> CollectorRegistry:
    """Return a registry with this collector alone."""
    found = CollectorRegistry(auto_describe=False)
    found.register(BusCollector(settings))
    return found
