"""The figures of the last hour, for the charts; they are kept in this process's memory."""

import threading
from collections import deque

import msgspec
from memorybus.health.verdict import BusState

MOMENT_SECONDS = 5.0  # seconds between two recorded moments

KEPT_SECONDS = 3_600.0  # how many seconds are kept


class Moment(msgspec.Struct, frozen=True):
    """The figures at one moment.

    Attributes:
        rate: events applied a second, by provider; providers without a known rate are missing.
    """

    at: float  # seconds since the Unix epoch
    backlog: dict[str, int]
    rate: dict[str, float]


class Past:
    """The moments of the last hour; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[Moment] = deque(maxlen=round(KEPT_SECONDS / MOMENT_SECONDS))

    def note(self, bus: BusState) -> None:
        """Record the figures of one moment; if Redis was away, record a gap."""
        providers = bus.status.providers if bus.status else []
        seen = Moment(
            bus.at_ms / 1000,
            {provider.name: provider.backlog for provider in providers},
            {provider.name: provider.rate for provider in providers if provider.rate is not None},
        )
        with self._lock:
            self._seen.append(seen)

    def series(self) -> dict[str, object]:
        """Return times, and by provider the backlog and the rate at each; None for a gap."""
        with self._lock:
            seen = list(self._seen)
        names = sorted({name for moment in seen for name in moment.backlog})
        return {
            "at": [moment.at for moment in seen],
            "backlog": {name: [moment.backlog.get(name) for moment in seen] for name in names},
            "rate": {name: [moment.rate.get(name) for moment in seen] for name in names},
        }
