"""The event ids of a ledger, held in memory: what a store has applied last (G4, G10).

A ledger is written as one row for each batch, since ids of events are in no order: an index of them
would write a page of its own for nearly every id. So it is looked up here, which follows the rows.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

_ID = 16


class AppliedIds:
    """The ids in a ledger's committed rows.

    Attributes:
        ids: all of them.
    """

    def __init__(self, kept: int) -> None:
        """Know nothing yet; `kept` ids are remembered, the last ones."""
        self._kept = kept
        self.ids: set[bytes] = set()
        self._rows: deque[tuple[int, bytes]] = deque()

    @property
    def last(self) -> int:
        """The number of the last row that is known; 0 for none."""
        return self._rows[-1][0] if self._rows else 0

    def follow(self, new: Iterable[tuple[int, bytes]], first: int | None) -> None:
        """Take in new rows, and forget those below the first that is left."""
        for row in new:
            self._rows.append(row)
            self.ids.update(_split(row[1]))
        while self._rows and (first is None or self._rows[0][0] < first):
            self.ids.difference_update(_split(self._rows.popleft()[1]))

    def surplus(self) -> int:
        """Return the number of the last old row that may be deleted; 0 if all must be kept."""
        surplus, upto = len(self.ids) - self._kept, 0
        for seq, ids in self._rows:
            surplus -= len(ids) // _ID
            if surplus < 0:
                break
            upto = seq
        return upto


class KnowsApplied:
    """What an open transaction knows of its ledger: committed rows, and what it has added."""

    def __init__(self, known: AppliedIds) -> None:
        """Have added nothing yet."""
        self._known = known
        self._recorded: set[bytes] = set()

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        known, recorded = self._known.ids, self._recorded
        ids = {event_id: bytes.fromhex(event_id) for event_id in event_ids}
        return frozenset(e for e, key in ids.items() if key in known or key in recorded)

    def row_of(self, event_ids: Sequence[str]) -> bytes:
        """Return the ledger's next row, for those of some events that no committed row has."""
        ids = {bytes.fromhex(event_id) for event_id in event_ids} - self._known.ids
        self._recorded |= ids
        return b"".join(ids)


def _split(ids: bytes) -> Iterator[bytes]:
    return (ids[at : at + _ID] for at in range(0, len(ids), _ID))
