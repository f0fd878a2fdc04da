"""What was seen in the last hour: kept in this process's memory, as it looks."""

import threading
from collections import deque

import msgspec

from memorybus.health.looks import Look

EVERY = 5.0
"""Seconds between what is kept."""

SPAN = 3_600.0
"""Seconds that are kept."""


class Seen(msgspec.Struct, frozen=True):
    """One moment.

    Attributes:
        at: seconds since the Unix epoch.
        backlog: events that waited, by provider.
        rate: events a second that were applied, by provider; those that tell none are missing.
    """

    at: float
    backlog: dict[str, int]
    rate: dict[str, float]


class Past:
    """The moments of the last hour; any thread may ask."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lock = threading.Lock()
        self._seen: deque[Seen] = deque(maxlen=round(SPAN / EVERY))

    def note(self, look: Look) -> None:
        """Keep a look's figures; where Redis was away there is a gap."""
        providers = look.status.providers if look.status else []
        seen = Seen(
            look.at_ms / 1000,
            {one.name: one.backlog for one in providers},
            {one.name: one.rate for one in providers if one.rate is not None},
        )
        with self._lock:
            self._seen.append(seen)

    def series(self) -> dict[str, object]:
        """Return times, and by provider the backlog and the rate at each; None for a gap."""
        with self._lock:
            seen = list(self._seen)
        names = sorted({name for one in seen for name in one.backlog})
        return {
            "at": [one.at for one in seen],
            "backlog": {name: [one.backlog.get(name) for one in seen] for name in names},
            "rate": {name: [one.rate.get(name) for one in seen] for name in names},
        }
