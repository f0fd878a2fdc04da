"""The sessions that this host knows, in a small SQLite file, so that a resumed one keeps its place.

The lineage itself is in the log. The file is the producer's own note of it (id -> root, parent,
epoch), because a producer must know a session's root before it can publish, even while Redis is
down. The file also has notes about a session's turns, so that these can be undone later, and the
part of each lineage's system prompt that must stay the same.
"""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memorybus import private
from memorybus.concurrency.forking import ProcessLock, sqlite_guard
from memorybus.errors import SpoolError
from memorybus.events import Scope, SessionRef
from memorybus.redis.keys import recall_slot

_SCHEMA = """
create table if not exists sessions(
    slot text primary key, id text not null, root text not null, parent text not null,
    epoch integer not null) without rowid;
create table if not exists steps(slot text primary key, event text not null) without rowid;
create table if not exists turns(slot text primary key, at integer not null, body blob not null);
create index if not exists turns_by_age on turns(at);
create table if not exists prompts(slot text primary key, used_at integer not null, text text
    not null) without rowid;
"""
_MAX_PROMPTS = 1_024
"""The most lineages whose system prompts are kept, those that were used last (G10)."""

_PROMPT_LIFE = 30 * 86_400_000  # milliseconds after its last use for which a system prompt is kept

_DELETE_EXCESS_PROMPTS = """
delete from prompts where used_at < ? or slot in (
    select slot from prompts order by used_at desc limit -1 offset ?)
"""
_DELETE_OLD_TURNS = (
    "delete from turns where at <= (select at from turns order by at desc limit 1 offset ?)"
)
_READ_PLACE = "select id, root, parent, epoch from sessions where slot = ?"


class HostSessions:
    """Sessions by scope and id. Safe to call from any thread.

    `SpoolError`: the file cannot be opened or written, another process writes, or the disk is full.

    Args:
        path: the file, which is created if it is missing. A damaged file is renamed, and a new one
            is created; this host then no longer knows which root a resumed session continues.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._undisturbed = sqlite_guard()
        self._lock = ProcessLock()
        self._inherited: list[sqlite3.Connection] = []
        self._reopen()

    def _reopen(self) -> None:
        try:
            private.directory(self._path.parent)
            with self._undisturbed:
                self._db = _open(self._path)
        except (OSError, sqlite3.OperationalError) as error:
            raise SpoolError(
                f"{self._path}: {error}; set `data_dir` to a place that can be written"
            ) from error
        self._pid = os.getpid()

    def _check_process(self) -> None:
        """After a fork, open the file again: a child may neither use nor close the connection."""
        if os.getpid() != self._pid:
            self._inherited.append(self._db)
            self._reopen()

    def get(self, scope: Scope, session_id: str) -> SessionRef | None:
        """Return a session's place in its lineage; None if this host does not know it."""
        slot = (recall_slot(scope, session_id),)
        with self._lock.here():
            self._check_process()
            with self._undisturbed:
                row = self._db.execute(_READ_PLACE, slot).fetchone()
        return SessionRef(*row) if row else None

    def put(self, scope: Scope, ref: SessionRef, event_id: str = "") -> None:
        """Remember a session's place, and the event of the step that led there."""
        slot = recall_slot(scope, ref.id)
        self._run(
            (
                "replace into sessions values (?, ?, ?, ?, ?)",
                (slot, ref.id, ref.root, ref.parent, ref.epoch),
            ),
            ("replace into steps values (?, ?)", (slot, event_id)),
        )

    def led_to(self, scope: Scope, session_id: str) -> str:
        """Return the event of the step that led to a session's place; "" if none is known."""
        slot = recall_slot(scope, session_id)
        [[event]] = self._run(("select (select event from steps where slot = ?)", (slot,)))
        return event or ""

    def turns(self, slot: str) -> bytes:
        """Return the notes about the turns of the session with this `keys.recall_slot`, or b""."""
        with self._lock.here():
            self._check_process()
            with self._undisturbed:
                cursor = self._db.execute("select body from turns where slot = ?", (slot,))
                row = cursor.fetchone()
        return bytes(row[0]) if row else b""

    def keep_turns(self, slot: str, body: bytes, at: int, most: int) -> None:
        """Store notes about a session's turns; beyond `most` sessions the oldest go (G10)."""
        self._run(
            ("replace into turns values (?, ?, ?)", (slot, at, body)), (_DELETE_OLD_TURNS, (most,))
        )

    def prompt(self, scope: Scope, root: str, now: int) -> str | None:
        """Return what providers added to a lineage's system prompt; None if not stored yet."""
        slot = recall_slot(scope, root)
        [[text]] = self._run(
            ("update prompts set used_at = ? where slot = ?", (now, slot)),
            ("select (select text from prompts where slot = ?)", (slot,)),
        )
        return None if text is None else str(text)

    def keep_prompt(self, scope: Scope, root: str, text: str, now: int) -> str:
        """Store what providers add to the system prompt of a lineage, for its life; return it.

        If another process was first, its text is kept and returned.
        """
        slot = recall_slot(scope, root)
        [[kept]] = self._run(
            ("insert or ignore into prompts values (?, ?, ?)", (slot, now, text)),
            (_DELETE_EXCESS_PROMPTS, (now - _PROMPT_LIFE, _MAX_PROMPTS)),
            ("select text from prompts where slot = ?", (slot,)),
        )
        return str(kept)

    def forget(self, sessions: Iterable[tuple[Scope, str]]) -> None:
        """Erase the notes of some sessions' turns, and all system prompts, also from the disk.

        The sessions keep their places in their lineages: later events must not get the ids of
        earlier ones.
        """
        slots = {recall_slot(scope, session) for scope, session in sessions}
        self._run(
            *(("delete from turns where slot = ?", (slot,)) for slot in slots),
            ("delete from prompts", ()),
            ("vacuum", ()),
            ("pragma wal_checkpoint(truncate)", ()),
        )

    def _run(self, *steps: tuple[str, tuple[str | int | bytes, ...]]) -> list[tuple[Any, ...]]:
        """Execute several statements, and return the rows of the last one."""
        rows: list[tuple[Any, ...]] = []
        try:
            with self._lock.here():
                self._check_process()
                with self._undisturbed:
                    for sql, values in steps:
                        rows = self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise SpoolError(f"{self._path}: {error}") from error
        return rows

    def close(self) -> None:
        """Close the file, unless it is the parent process's."""
        if os.getpid() != self._pid:
            return
        with self._lock.here():
            self._db.close()


def _open(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        path.rename(path.with_suffix(".corrupt"))
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    private.file(path)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        _write_ahead(db)
        db.execute("pragma synchronous = normal")
        db.executescript(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, unless another agent that starts does so at the moment.

    SQLite does not wait for the lock that the switch needs. Only a new file needs the switch.
    """
    try:
        db.execute("pragma journal_mode = wal")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
