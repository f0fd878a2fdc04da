"""Checkpoint and ledger in a SQLite provider's own database: effects happen once (G4, G5).

The tables live beside the provider's. A lane's row holds the newest epoch and the checkpoint; the
ledger holds the ids of recently applied events, so that an event that comes again at a new
position (the log lost its tail and the publisher resent it) changes nothing. It is kept as two
halves: when the new one is full it takes the place of the old one, which costs nothing per event.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memorybus.errors import StaleEpoch, Transient, Unavailable

from memorybus_providers.base import Fence, Progress

LEDGER_HALF = 200_000
"""Event ids in each half: the last 200,000 to 400,000 of a database are remembered (G10)."""

_SCHEMA = """
create table if not exists mb_lanes(
    lane text primary key, epoch integer not null, entry text not null, n integer not null
) without rowid;
create table if not exists mb_applied(id blob primary key) without rowid;
create table if not exists mb_applied_old(id blob primary key) without rowid;
create table if not exists mb_ledger(one integer primary key check (one = 1), count integer);
insert or ignore into mb_ledger values (1, 0);
"""


def migrate(db: sqlite3.Connection) -> None:
    """Create the tables if they are missing; a reader of a file that has them needs no lock."""
    if not db.execute("select 1 from sqlite_master where name = 'mb_ledger'").fetchone():
        db.executescript(f"begin immediate;{_SCHEMA}commit;")


def progress(db: sqlite3.Connection, lane: str) -> Progress | None:
    """Return a lane's committed progress, or None if this database has never seen it."""
    row = db.execute("select epoch, entry, n from mb_lanes where lane = ?", (lane,)).fetchone()
    return Progress(*row) if row else None


class SqliteTransaction:
    """One open transaction (see `memorybus_providers.base.Transaction`)."""

    def __init__(self, db: sqlite3.Connection, lane: str) -> None:
        """Work inside the transaction that `db` has open."""
        self._db = db
        self._lane = lane

    def applied(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return those of `event_ids` that the ledger already holds."""
        marks = ",".join("?" * len(event_ids))
        ids = [bytes.fromhex(event_id) for event_id in event_ids]
        rows = self._db.execute(
            f"select id from mb_applied where id in ({marks}) "  # noqa: S608  only marks
            f"union all select id from mb_applied_old where id in ({marks})",
            ids + ids,
        )
        return frozenset(row[0].hex() for row in rows)

    def record(self, event_ids: Sequence[str], progress: Progress) -> None:
        """Write the ids into the ledger and advance the lane."""
        self._db.executemany(
            "insert or ignore into mb_applied(id) values (?)",
            [(bytes.fromhex(event_id),) for event_id in event_ids],
        )
        self._db.execute(
            "insert into mb_lanes values (?, ?, ?, ?) on conflict(lane) do update "
            "set epoch = excluded.epoch, entry = excluded.entry, n = excluded.n",
            (self._lane, progress.epoch, progress.entry, progress.n),
        )
        self._count(len(event_ids))

    def _count(self, more: int) -> None:
        if not more:
            return
        self._db.execute("update mb_ledger set count = count + ?", (more,))
        if self._db.execute("select count from mb_ledger").fetchone()[0] >= LEDGER_HALF:
            self._rotate()

    def _rotate(self) -> None:
        self._db.execute("drop table mb_applied_old")
        self._db.execute("alter table mb_applied rename to mb_applied_old")
        self._db.execute("create table mb_applied(id blob primary key) without rowid")
        self._db.execute("update mb_ledger set count = 0")


@contextmanager
def transaction(db: sqlite3.Connection, fence: Fence) -> Iterator[SqliteTransaction]:
    """Open a write transaction for the owner of a lane.

    `db` must be in autocommit mode (``isolation_level=None``).

    Raises:
        StaleEpoch: the database has seen a newer owner of the lane.
        Transient: the database is locked by another process.
        Unavailable: the disk is full or the file cannot be written.
    """
    try:
        db.execute("begin immediate")
    except sqlite3.OperationalError as error:
        raise translated(error) from error
    try:
        _check_epoch(db, fence)
        yield SqliteTransaction(db, fence.lane)
        db.execute("commit")
    except sqlite3.OperationalError as error:
        _roll_back(db)
        raise translated(error) from error
    except BaseException:
        _roll_back(db)
        raise


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


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        db.execute("rollback")
