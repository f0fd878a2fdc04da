"""The store's SQLite database: schema, connection, lock, and what its errors mean."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memorybus.errors import Unavailable

from memorybus_providers import ledger

LOCK_WAIT_MS = 5_000
"""How long a write waits for another process's transaction before it is `Transient` (G10)."""

LOCAL_ERRORS = (IsADirectoryError, NotADirectoryError, PermissionError)
"""Errors of a memory file or folder that cannot be used: only the writes of its owner wait."""

_SCHEMA = """
create table if not exists pending(
    seq integer primary key autoincrement, store text not null, folder text not null,
    writes blob not null
);
create table if not exists origins(
    store text not null, folder text not null, entry text not null, session text not null,
    at integer not null, agent text not null, user text not null, workspace text not null,
    event text not null, primary key (store, folder, entry)
) without rowid;
create table if not exists outcomes(outcome text primary key, n integer not null) without rowid;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the database in autocommit mode and create what is missing in it."""
    db = sqlite3.connect(
        path, timeout=LOCK_WAIT_MS / 1000, isolation_level=None, check_same_thread=False
    )
    try:
        _write_ahead(db)
        # The commit must be on disk before the rename, or a power failure would double writes.
        db.execute("pragma synchronous = full")
        ledger.migrate(db)
        db.execute("pragma secure_delete = on")  # what is removed does not stay in the file
        db.executescript(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, unless another process is doing so at the moment.

    SQLite does not wait for the lock that the switch needs. The switch is needed only once, when
    the file is new, and then only another instance that is switching can have the lock.
    """
    try:
        db.execute("pragma journal_mode = wal")
    except sqlite3.OperationalError as error:
        if not ledger.is_locked(error):
            raise


@contextmanager
def reporting_errors(home: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into provider errors.

    Raises:
        Transient: another process has locked the database.
        Unavailable: the disk is full, the database is damaged, or input or output fails.
        OSError: one of `LOCAL_ERRORS`, which concern one person's file.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        raise ledger.provider_error(error) from error
    except LOCAL_ERRORS:
        raise
    except (sqlite3.DatabaseError, OSError) as error:
        raise Unavailable(f"{home}: {error}") from error
