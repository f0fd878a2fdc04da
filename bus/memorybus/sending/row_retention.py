"""Decides how long rows stay in the spool after Redis took them (G1)."""

from collections import deque


class RowRetention:
    """Remembers how far the log was at which time: sent rows stay in the spool for a while (G1).

    Belongs to one thread.
    """

    def __init__(self) -> None:
        """Start without marks."""
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, cursor: int) -> None:
        """Note that Redis has every row up to `cursor` at the time `now`."""
        if not self._marks or cursor > self._marks[-1][1]:
            self._marks.append((now, cursor))

    def take_upto(self, until: float) -> int:
        """Return the last row that Redis had at the time `until`, and drop its mark; 0 for none."""
        cursor = 0
        while self._marks and self._marks[0][0] <= until:
            cursor = self._marks.popleft()[1]
        return cursor

    def restart(self) -> None:
        """Drop all marks: rows are sent again, and stay for the whole time again."""
        self._marks.clear()
