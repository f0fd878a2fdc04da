"""Checkpoint and ledger in a SQLite provider's own database: effects happen once (G4, G5).

The tables live beside the provider's. A lane's row holds the newest epoch and the checkpoint; the
ledger holds the ids of recently applied events, so that an event that comes again at a new
position (the log lost its tail and the publisher resent it) changes nothing.

Ids are looked up in memory (`applied_ids`): each transaction first reads what any process has
committed since the last one.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memorybus.errors import Transient, Unavailable

from memorybus_providers.applied_ids import AppliedIds, TransactionIds
from memorybus_providers.base import Fence, Progress, refuse_stale

MAX_EVENT_IDS = 100_000
"""The last 100,000 event ids of a database are remembered (G10): some 12 MB in a worker."""

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

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


class SqliteTransaction(TransactionIds):
    """One open transaction (see `memorybus_providers.base.Transaction`)."""

    def __init__(self, db: sqlite3.Connection, lane: str, ids: "LedgerIds | None" = None) -> None:
        self._db = db
        self._lane = lane
        rows = ids or LedgerIds(db)
        rows.catch_up()
        super().__init__(rows)

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane."""
        if row := self.next_row(event_ids):
            self._db.execute("insert into mb_applied(ids) values (?)", (row,))
            self._db.execute("delete from mb_applied where seq <= ?", (self._known.surplus(),))
        self._db.execute(
            "insert into mb_lanes values (?, ?, ?, ?) on conflict(lane) do update "
            "set epoch = excluded.epoch, entry = excluded.entry, n = excluded.n",
            (self._lane, progress.epoch, progress.entry, progress.n),
        )


class LedgerIds(AppliedIds):
    """The ids in a database's ledger."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(MAX_EVENT_IDS)
        self._db = db

    def catch_up(self) -> None:
        """Read the new rows and forget the deleted ones. The caller holds the write lock."""
        new = self._db.execute(
            "select seq, ids from mb_applied where seq > ? order by seq", (self.last,)
        ).fetchall()
        first = self._db.execute("select min(seq) from mb_applied").fetchone()[0]
        self.follow(new, first)


class Ledger:
    """A database's ledger and lanes. Belongs to the connection, hence to one thread.

    `db` must be in autocommit mode (``isolation_level=None``), and migrated.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known = LedgerIds(db)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[SqliteTransaction]:
        """Open a write transaction for the owner of a lane.

        Raises:
            LeaseLost: the database has seen a newer owner of the lane.
            Transient: the database is locked by another process.
            Unavailable: the disk is full or the file cannot be written.
        """
        try:
            with write_lock(self._db):
                known = progress(self._db, fence.lane)
                refuse_stale(fence, known.epoch if known else None)
                yield SqliteTransaction(self._db, fence.lane, self._known)
        except sqlite3.OperationalError as error:
            raise provider_error(error) from error


def provider_error(error: sqlite3.OperationalError) -> Transient:
    """Return the provider error that an SQLite operational error stands for."""
    meaning = Transient if is_locked(error) else Unavailable
    return meaning(f"SQLite: {error}")


def is_locked(error: sqlite3.OperationalError) -> bool:
    """Return whether an error only means that another connection holds a lock."""
    # An extended code has its primary one in the last byte; Python's own errors have none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED
