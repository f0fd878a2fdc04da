"""Checkpoint and ledger in a SQLite provider's own database: effects happen once (G4, G5).

The tables live beside the provider's. A lane's row holds the newest epoch and the checkpoint; the
ledger holds the ids of recently applied events, so that an event that comes again at a new
position (the log lost its tail and the publisher resent it) changes nothing.

The ledger is written as one row per batch, since ids of events are in no order: an index of them
would write a page of its own for nearly every id. It is looked up in memory, which follows the
rows: each transaction first reads what was committed since the last one, by whomever.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memorybus.errors import StaleEpoch, Transient, Unavailable

from memorybus_providers.base import Fence, Progress

KEPT = 100_000
"""The last 100,000 event ids of a database are remembered (G10): some 12 MB in a worker."""

_ID = 16

_SCHEMA = """
create table if not exists mb_lanes(
    lane text primary key, epoch integer not null, entry text not null, n integer not null
) without rowid;
create table if not exists mb_applied(seq integer primary key, ids blob not null);
"""


def migrate(db: sqlite3.Connection) -> None:
    """Create the tables if they are missing; a reader of a file that has them needs no lock."""
    if not db.execute("select 1 from sqlite_master where name = 'mb_applied'").fetchone():
        db.executescript(f"begin immediate;{_SCHEMA}commit;")


@contextmanager
def write_lock(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the database's write lock; leaving normally commits, an exception rolls back."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def progress(db: sqlite3.Connection, lane: str) -> Progress | None:
    """Return a lane's committed progress, or None if this database has never seen it."""
    row = db.execute("select epoch, entry, n from mb_lanes where lane = ?", (lane,)).fetchone()
    return Progress(*row) if row else None


class SqliteTransaction:
    """One open transaction (see `memorybus_providers.base.Transaction`)."""

    def __init__(self, db: sqlite3.Connection, lane: str, known: "LedgerIds | None" = None) -> None:
        """Work inside the transaction that `db` has open; without `known`, read the ledger anew."""
        self._db = db
        self._lane = lane
        self._known = known or LedgerIds(db)
        self._known.catch_up()
        self._recorded: set[bytes] = set()

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        known, recorded = self._known.ids, self._recorded
        ids = {event_id: bytes.fromhex(event_id) for event_id in event_ids}
        return frozenset(e for e, key in ids.items() if key in known or key in recorded)

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane."""
        ids = {bytes.fromhex(event_id) for event_id in event_ids} - self._known.ids
        if ids:
            self._db.execute("insert into mb_applied(ids) values (?)", (b"".join(ids),))
            self._db.execute("delete from mb_applied where seq <= ?", (self._known.surplus(),))
            self._recorded |= ids
        self._db.execute(
            "insert into mb_lanes values (?, ?, ?, ?) on conflict(lane) do update "
            "set epoch = excluded.epoch, entry = excluded.entry, n = excluded.n",
            (self._lane, progress.epoch, progress.entry, progress.n),
        )


class LedgerIds:
    """The ids in the ledger's committed rows, held in memory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Know nothing yet."""
        self._db = db
        self.ids: set[bytes] = set()
        self._rows: deque[tuple[int, bytes]] = deque()

    def catch_up(self) -> None:
        """Read the new rows and forget the deleted ones. The caller holds the write lock."""
        db = self._db
        last = self._rows[-1][0] if self._rows else 0
        new = db.execute("select seq, ids from mb_applied where seq > ? order by seq", (last,))
        for row in new.fetchall():
            self._rows.append(row)
            self.ids.update(_split(row[1]))
        first = db.execute("select min(seq) from mb_applied").fetchone()[0]
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


def _split(ids: bytes) -> Iterator[bytes]:
    return (ids[at : at + _ID] for at in range(0, len(ids), _ID))


class Ledger:
    """A database's ledger and lanes. Belongs to the connection, hence to one thread.

    `db` must be in autocommit mode (``isolation_level=None``), and migrated.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        """Read nothing yet."""
        self._db = db
        self._known = LedgerIds(db)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[SqliteTransaction]:
        """Open a write transaction for the owner of a lane.

        Raises:
            StaleEpoch: the database has seen a newer owner of the lane.
            Transient: the database is locked by another process.
            Unavailable: the disk is full or the file cannot be written.
        """
        try:
            with write_lock(self._db):
                _check_epoch(self._db, fence)
                yield SqliteTransaction(self._db, fence.lane, self._known)
        except sqlite3.OperationalError as error:
            raise translated(error) from error


def translated(error: sqlite3.OperationalError) -> Transient:
    """Return the provider error that an SQLite operational error stands for."""
    if "locked" in str(error) or "busy" in str(error):
        return Transient(f"SQLite: {error}")
    return Unavailable(f"SQLite: {error}")


def _check_epoch(db: sqlite3.Connection, fence: Fence) -> None:
    known = progress(db, fence.lane)
    if known is not None and known.epoch > fence.epoch:
        raise StaleEpoch(
            f"lane {fence.lane}: epoch {fence.epoch} is stale, the store has seen {known.epoch}"
        )
