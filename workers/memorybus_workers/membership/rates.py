"""Measures how fast a worker applied events over the last seconds; pure."""

from collections import deque
from collections.abc import Mapping

_RATE_SECONDS = 10.0  # seconds over which a rate is taken: more than a pause between batches


class Rates:
    """The rates at which totals grow, from their values at different times."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Mapping[str, int]]] = deque()

    def note(self, now: float, totals: Mapping[str, int]) -> dict[str, float]:
        """Note the totals; return the rate of each, in events a second."""
        self._seen.append((now, dict(totals)))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        if now <= since:
            return {}
        return {
            name: round((total - before.get(name, 0)) / (now - since), 3)
            for name, total in totals.items()
        }
