"""A spool's SQLite file: how it is opened, what its errors mean, and where it was made."""

import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from memorybus import private
from memorybus.concurrency.forking import undisturbed
from memorybus.errors import SpoolCorrupt, SpoolFull
from memorybus.spool.delivered import HANDED
from memorybus.spool.note import NOTE, SENT

_PAGE = 8_192
"""Five turns of usual size to a page: most inserts write one page, the fewest begin another."""

_CHECKED_UP_TO = 64 << 20

_BOOT = Path("/proc/sys/kernel/random/boot_id")

_FULL_CODES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})


def connect(path: Path) -> sqlite3.Connection:
    """Open a spool file as its owner: WAL, no checkpoint on the publishing thread.

    SQLite's ``unix-excl`` locks the file for this process once, not at every insert, which saves a
    third of an insert's time; connections of this process still share it, others cannot read it.
    """
    with suppress(OSError):  # SQLite says the same in the words that are handled
        private.file(path)
    db = _opened(path)
    try:
        db.execute(f"pragma page_size = {_PAGE}")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.execute("pragma wal_autocheckpoint = 0")
    except sqlite3.Error:
        db.close()
        raise
    return db


def salvaging(path: Path) -> sqlite3.Connection:
    """Open a damaged file to read what can be read: also one cut short, as far as it goes."""
    db = _opened(path)
    with suppress(sqlite3.DatabaseError):
        db.execute("pragma writable_schema = on")
    return db


def _opened(path: Path) -> sqlite3.Connection:
    where = f"file:{quote(str(path.absolute()))}?vfs=unix-excl"
    return sqlite3.connect(
        where, uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the spool's, with the file's name; no fork begins meanwhile."""
    try:
        with undisturbed():
            yield
    except sqlite3.Error as error:
        raise translated(path, error) from error


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the block, roll back if it fails."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def translated(path: Path, error: sqlite3.Error) -> SpoolCorrupt | SpoolFull:
    """Return the spool error that an SQLite error stands for."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _FULL_CODES or isinstance(error, sqlite3.OperationalError):
        return SpoolFull(f"{path}: {error}; the event was not accepted: make room on the disk")
    return SpoolCorrupt(f"{path}: damaged ({error}); the next start sets it aside and saves rows")


def check(db: sqlite3.Connection, path: Path) -> None:
    """Look through a file that is not too large for it; else damage shows when rows are read.

    Raises:
        sqlite3.DatabaseError: it is damaged.
    """
    if path.stat().st_size > _CHECKED_UP_TO:
        return  # reading every page would hold up the agent
    verdict = db.execute("pragma quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def sign(db: sqlite3.Connection, path: Path) -> None:
    """Note in a new file where it was made."""
    db.execute("create table born(place text not null)")
    db.execute("insert into born values (?)", (_place(path),))


def is_signed(db: sqlite3.Connection, path: Path) -> bool:
    """Say whether this is the very file that was signed, in this boot of the machine; no copy."""
    if not db.execute("select 1 from sqlite_master where name = 'born'").fetchone():
        return False
    return (_place(path),) in db.execute("select place from born").fetchall()


def _place(path: Path) -> str:
    """Return what a file shares with no copy of it: this boot of the machine, device and inode.

    A clone of a whole disk has the same inodes and often the same host name, but a boot of its own.
    Where the system does not name its boot, the host name has to do.
    """
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = socket.gethostname()
    file = path.stat()
    return f"{boot}:{file.st_dev}:{file.st_ino}"


def remove(path: Path) -> None:
    """Delete a spool with what lies beside it, whole or just begun; its lock stays."""
    for suffix in (".db", ".db-wal", ".db-shm", ".ballast", NOTE, SENT, HANDED):
        path.with_suffix(suffix).unlink(missing_ok=True)
