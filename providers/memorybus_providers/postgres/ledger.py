"""Keeps checkpoints and ledgers in the provider's own tables: effects happen once (G4, G5).

A lane's row has the newest epoch and the checkpoint; its ledger has the ids of the events that were
applied last, one row for each batch. Each lane has one owner, which keeps these ids in memory. A
transaction begins by reading what has been committed since, by any owner.
"""

from collections.abc import Sequence

from memorybus_providers.applied_ids import AppliedIds, TransactionIds
from memorybus_providers.base import Fence, Progress, refuse_stale
from memorybus_providers.postgres.link import Connection

MAX_EVENT_IDS = 20_000
"""The most event ids that are remembered for each lane, the last ones (G10); they take 2 MB."""

_LOCK = "select pg_advisory_xact_lock(hashtext(current_schema() || ' lane ' || %s))"
_PROGRESS = "select epoch, entry, n from lanes where lane = %s"
_NEW_IDS = "select seq, ids from applied where lane = %s and seq > %s order by seq"
_FIRST_IDS = "select min(seq) from applied where lane = %s"
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


class LaneTransaction(TransactionIds):
    """One open transaction (see `memorybus_providers.base.Transaction`)."""

    def __init__(self, db: Connection, lane: str, ids: AppliedIds) -> None:
        super().__init__(ids)
        self._db = db
        self._lane = lane

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane."""
        row = self.next_row(event_ids)
        with self._db.pipeline():
            if row:
                self._db.execute(_ADD, (self._lane, row))
                self._db.execute(_FORGET, (self._lane, self._known.surplus()))
            self._db.execute(_RECORD, (self._lane, progress.epoch, progress.entry, progress.n))


class PostgresLedger:
    """The lanes that this process worked on, and their latest event ids. For one thread."""

    def __init__(self) -> None:
        self._lanes: dict[str, AppliedIds] = {}

    def open(self, db: Connection, fence: Fence) -> LaneTransaction:
        """Claim a lane for the transaction that `db` has open.

        If another owner has a transaction open, this waits for its end before it reads.

        Raises:
            LeaseLost: the tables have seen a newer owner.
        """
        applied_ids = self._lanes.setdefault(fence.lane, AppliedIds(MAX_EVENT_IDS))
        with db.pipeline():
            db.execute(_LOCK, (fence.lane,))
            seen = db.execute(_PROGRESS, (fence.lane,))
            new = db.execute(_NEW_IDS, (fence.lane, applied_ids.last))
            first = db.execute(_FIRST_IDS, (fence.lane,))
        row, lowest = seen.fetchone(), first.fetchone()
        refuse_stale(fence, row[0] if row else None)
        rows = [(seq, bytes(ids)) for seq, ids in new.fetchall()]
        applied_ids.follow(rows, lowest[0] if lowest else None)
        return LaneTransaction(db, fence.lane, applied_ids)
