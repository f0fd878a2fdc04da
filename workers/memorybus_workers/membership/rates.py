"""How fast a worker applies events, over the last seconds; pure."""

from collections import deque
from collections.abc import Mapping

_SPAN = 10.0
"""Seconds over which a rate is taken: more than a pause between batches."""


class Rates:
    """Rates of growing totals, as looks at them show."""

    def __init__(self) -> None:
        """Have seen nothing."""
        self._seen: deque[tuple[float, Mapping[str, int]]] = deque()

    def note(self, now: float, totals: Mapping[str, int]) -> dict[str, float]:
        """Take in a look; return the rate of each total, in events a second.

        Args:
            now: monotonic seconds.
            totals: by provider; one that is new has grown from 0.
        """
        self._seen.append((now, dict(totals)))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _SPAN:
            self._seen.popleft()
        since, before = self._seen[0]
        if now <= since:
            return {}
        return {
            name: round((total - before.get(name, 0)) / (now - since), 3)
            for name, total in totals.items()
        }
