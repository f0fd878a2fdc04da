"""When rows that Redis took may be deleted from the spool: some seconds later (G1)."""

from collections import deque


class Ripening:
    """How far the log was at which time. Belongs to one thread."""

    def __init__(self) -> None:
        """Nothing was taken."""
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, now: float, cursor: int) -> None:
        """Note that Redis has every row up to `cursor` now."""
        if not self._marks or cursor > self._marks[-1][1]:
            self._marks.append((now, cursor))

    def take(self, until: float) -> int:
        """Return up to where Redis had the rows at a time, and forget that; 0 if not noted."""
        cursor = 0
        while self._marks and self._marks[0][0] <= until:
            cursor = self._marks.popleft()[1]
        return cursor

    def again(self) -> None:
        """Begin anew: rows are sent again, and are kept as long again."""
        self._marks.clear()
