"""The event ids of a ledger, held in memory: the events that a store applied last (G4, G10).

A ledger has one row for each batch. Ids of events are in no order, so that an index of them would
write a page for nearly every id. Instead they are looked up in memory, which follows the rows.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

_ID = 16


class AppliedIds:
    """The ids in a ledger's committed rows."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self.ids: set[bytes] = set()  # all of them
        self._rows: deque[tuple[int, bytes]] = deque()

    @property
    def last(self) -> int:
        """The number of the last known row; 0 for none."""
        return self._rows[-1][0] if self._rows else 0

    def follow(self, new: Iterable[tuple[int, bytes]], first: int | None) -> None:
        """Add new rows, and forget those below the first row that is left."""
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


class TransactionIds:
    """The ids that an open transaction sees: those of committed rows, and those it has added."""

    def __init__(self, ids: AppliedIds) -> None:
        self._known = ids
        self._recorded: set[bytes] = set()

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        known, recorded = self._known.ids, self._recorded
        ids = {event_id: bytes.fromhex(event_id) for event_id in event_ids}
        return frozenset(e for e, key in ids.items() if key in known or key in recorded)

    def next_row(self, event_ids: Sequence[str]) -> bytes:
        """Return the ledger's next row: the ids among `event_ids` that no committed row has."""
        ids = {bytes.fromhex(event_id) for event_id in event_ids} - self._known.ids
        self._recorded |= ids
        return b"".join(ids)


def _split(ids: bytes) -> Iterator[bytes]:
    return (ids[at : at + _ID] for at in range(0, len(ids), _ID))
