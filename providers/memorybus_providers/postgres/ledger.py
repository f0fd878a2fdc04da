"""Checkpoint and ledger in the provider's own tables: effects happen once (G4, G5).

A lane's row holds the newest epoch and the checkpoint; its ledger the ids of the events that were
applied last, one row for each batch. Each lane has one owner, who knows them from memory: a
transaction begins by reading what was committed since, by whomever.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from memorybus.errors import StaleEpoch

from memorybus_providers.base import Fence, Progress
from memorybus_providers.postgres.link import Connection

KEPT = 20_000
"""Event ids that are remembered for each lane, the last ones (G10): some 2 MB of a worker."""

_ID = 16
_LOCK = "select pg_advisory_xact_lock(hashtext(current_schema() || ' lane ' || %s))"
_PROGRESS = "select epoch, entry, n from lanes where lane = %s"
_NEW = "select seq, ids from applied where lane = %s and seq > %s order by seq"
_FIRST = "select min(seq) from applied where lane = %s"
_RECORD = """
insert into lanes values (%s, %s, %s, %s) on conflict(lane) do update
set epoch = excluded.epoch, entry = excluded.entry, n = excluded.n
"""
_ADD = "insert into applied(lane, ids) values (%s, %s)"
_FORGET = "delete from applied where lane = %s and seq <= %s"


def progress(db: Connection, lane: str) -> Progress | None:
    """Return a lane's committed progress, or None if these tables have never seen it."""
    row = db.execute(_PROGRESS, (lane,)).fetchone()
    return Progress(*row) if row else None


class LaneIds:
    """The ids in a lane's committed rows, held in memory."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.ids: set[bytes] = set()
        self._rows: deque[tuple[int, bytes]] = deque()

    @property
    def last(self) -> int:
        """The number of the last row that is known."""
        return self._rows[-1][0] if self._rows else 0

    def follow(self, new: Sequence[tuple[int, bytes]], first: int | None) -> None:
        """Take in new rows, and forget those below the first that is left."""
        for row in new:
            self._rows.append(row)
            self.ids.update(_split(row[1]))
        while self._rows and (first is None or self._rows[0][0] < first):
            self.ids.difference_update(_split(self._rows.popleft()[1]))

    def surplus(self) -> int:
        """Return the number of the last old row that may be deleted; 0 if all must be kept."""
        surplus, upto = len(self.ids) - KEPT, 0
        for seq, ids in self._rows:
            surplus -= len(ids) // _ID
            if surplus < 0:
                break
            upto = seq
        return upto


class LaneTransaction:
    """One open transaction (see `memorybus_providers.base.Transaction`)."""

    def __init__(self, db: Connection, lane: str, known: LaneIds) -> None:
        """Work inside the transaction that `db` has open."""
        self._db = db
        self._lane = lane
        self._known = known
        self._recorded: set[bytes] = set()

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        known, recorded = self._known.ids, self._recorded
        ids = {event_id: bytes.fromhex(event_id) for event_id in event_ids}
        return frozenset(e for e, key in ids.items() if key in known or key in recorded)

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane."""
        ids = {bytes.fromhex(event_id) for event_id in event_ids} - self._known.ids
        with self._db.pipeline():
            if ids:
                self._db.execute(_ADD, (self._lane, b"".join(ids)))
                self._db.execute(_FORGET, (self._lane, self._known.surplus()))
                self._recorded |= ids
            self._db.execute(_RECORD, (self._lane, progress.epoch, progress.entry, progress.n))


class Ledger:
    """What is known of the lanes that were worked on here. For one thread."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lanes: dict[str, LaneIds] = {}

    def opened(self, db: Connection, fence: Fence) -> LaneTransaction:
        """Claim a lane for the transaction that `db` has open.

        Another owner's transaction is waited for: it ends before this one reads.

        Raises:
            StaleEpoch: the tables have seen a newer owner.
        """
        known = self._lanes.setdefault(fence.lane, LaneIds())
        with db.pipeline():
            db.execute(_LOCK, (fence.lane,))
            seen = db.execute(_PROGRESS, (fence.lane,))
            new = db.execute(_NEW, (fence.lane, known.last))
            first = db.execute(_FIRST, (fence.lane,))
        row, lowest = seen.fetchone(), first.fetchone()
        if row is not None and row[0] > fence.epoch:
            raise StaleEpoch(
                f"lane {fence.lane}: epoch {fence.epoch} is stale, the store has seen {row[0]}"
            )
        rows = [(seq, bytes(ids)) for seq, ids in new.fetchall()]
        known.follow(rows, lowest[0] if lowest else None)
        return LaneTransaction(db, fence.lane, known)


def _split(ids: bytes) -> Iterator[bytes]:
    return (ids[at : at + _ID] for at in range(0, len(ids), _ID))
