"""A spool's SQLite file: its tables, how it is opened and read, and what its errors mean."""

import socket
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from memorybus import private
from memorybus.concurrency.forking import sqlite_guard
from memorybus.errors import SpoolCorrupt, SpoolFull

_PAGE_BYTES = 8_192
"""Five turns of usual size fit into a page: most inserts write one page, few begin another."""

_MAX_CHECKED_BYTES = 64 << 20
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FULL_CODES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
SpoolRow: TypeAlias = tuple[int, int, bytes, bytes, bytes]
"""sequence, partition, event id (16 bytes), payload digest, body (msgpack)."""

ROW_OVERHEAD = 64  # bytes that a row takes in addition to its body, for the spool's bound

SCHEMA = """
create table if not exists events(
    seq integer primary key, partition integer not null, id blob not null, digest blob not null,
    body blob not null);
create table if not exists deleted(partition integer primary key, seq integer not null);
"""

INSERT = "insert into events values (?, ?, ?, ?, ?)"
AFTER = "select seq, partition, id, digest, body from events where seq > ? order by seq limit ?"

AFTER_OF_PARTITION = (
    "select seq, partition, id, digest, body from events "
    "where seq > ? and partition = ? order by seq limit ?"
)

_WHOLE_ROWS = (
    "select seq, partition, id, digest, body from events where typeof(partition) = 'integer' "
    "and typeof(id) = 'blob' and typeof(digest) = 'blob' and typeof(body) = 'blob'"
)


def connect(path: Path) -> sqlite3.Connection:
    """Open a spool file as its owner: WAL, no checkpoint on the publishing thread.

    SQLite's ``unix-excl`` locks the file for this process once, not at every insert, which saves a
    third of an insert's time; connections of this process still share it, others cannot read it.
    """
    with suppress(OSError):  # SQLite reports the same problem as an error that the callers handle
        private.file(path)
    db = _open(path)
    try:
        db.execute(f"pragma page_size = {_PAGE_BYTES}")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.execute("pragma wal_autocheckpoint = 0")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _open(path: Path) -> sqlite3.Connection:
    where = f"file:{quote(str(path.absolute()))}?vfs=unix-excl"
    return sqlite3.connect(
        where, uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )


@contextmanager
def spool_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into the spool's, with the file's name; delay forks meanwhile."""
    try:
        with sqlite_guard():
            yield
    except sqlite3.Error as error:
        raise translate_sqlite_error(path, error) from error


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the block; roll back if the block fails."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def translate_sqlite_error(path: Path, error: sqlite3.Error) -> SpoolCorrupt | SpoolFull:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _FULL_CODES or isinstance(error, sqlite3.OperationalError):
        return SpoolFull(f"{path}: {error}; the event was not accepted: make room on the disk")
    return SpoolCorrupt(f"{path}: damaged ({error}); the next start sets it aside and saves rows")


def check_for_damage(db: sqlite3.Connection, path: Path) -> None:
    """Look for damage in a file. A large file is not checked: its damage shows when it is read."""
    if path.stat().st_size > _MAX_CHECKED_BYTES:
        return  # reading every page would make the agent wait
    verdict = db.execute("pragma quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def take_up_to(rows: Iterable[SpoolRow], max_bytes: int) -> list[SpoolRow]:
    """Return the first rows whose bodies fit into `max_bytes`; at least one row."""
    taken: list[SpoolRow] = []
    size = 0
    for row in rows:
        size += len(row[4])
        if taken and size > max_bytes:
            break
        taken.append(row)
    return taken


def read_intact_rows(path: Path) -> Iterator[SpoolRow]:
    """Yield the rows that can still be read, in order: those before the damage, then those behind.

    One row is held at a time: the file may be much larger than the agent's memory. Rows behind the
    damage are found from the back, then read again in order.
    """
    last = 0
    for row in _read_until_damage(path, f"{_WHOLE_ROWS} order by seq"):
        last = row[0]
        yield row
    behind = deque(
        _read_until_damage(path, f"{_WHOLE_ROWS} and seq > ? order by seq desc", last), 1
    )
    if behind:
        yield from _read_until_damage(
            path, f"{_WHOLE_ROWS} and seq >= ? order by seq", behind[0][0]
        )


def _read_until_damage(path: Path, sql: str, *given: int) -> Iterator[SpoolRow]:
    with closing(_open_damaged(path)) as db, suppress(sqlite3.DatabaseError):
        yield from db.execute(sql, given)


def _open_damaged(path: Path) -> sqlite3.Connection:
    db = _open(path)
    with suppress(sqlite3.DatabaseError):
        db.execute("pragma writable_schema = on")
    return db


def sign(db: sqlite3.Connection, path: Path) -> None:
    """Note in a new file where it was made."""
    db.execute("create table born(place text not null)")
    db.execute("insert into born values (?)", (_place(path),))


def is_signed(db: sqlite3.Connection, path: Path) -> bool:
    """Return whether this is the file that was signed in this boot of the machine, and no copy."""
    if not db.execute("select 1 from sqlite_master where name = 'born'").fetchone():
        return False
    return (_place(path),) in db.execute("select place from born").fetchall()


def _place(path: Path) -> str:
    """Return what distinguishes a file from its copies: the machine's boot id, device and inode.

    A clone of a whole disk has the same inodes, and often the same host name, but another boot. On
    a system that does not name its boot, the host name is used.
    """
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = socket.gethostname()
    file = path.stat()
    return f"{boot}:{file.st_dev}:{file.st_ino}"
