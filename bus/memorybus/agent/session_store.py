"""What this host knows of sessions: a small SQLite file, so that a resumed session keeps its place.

The lineage itself is in the log; this is the producer's own note of it (id -> root, parent,
epoch), because a producer must know a session's root before it can publish, also with Redis down.
Beside it stands what a host notes of a session's turns, so that they can be undone later, and what
stands in a lineage's system prompt: it stays as it is, with Redis or not.
"""

import os
import sqlite3
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
create table if not exists turns(slot text primary key, at integer not null, body blob not null);
create index if not exists turns_by_age on turns(at);
create table if not exists prompts(slot text primary key, used_at integer not null, text text
    not null) without rowid;
"""
_PROMPTS = 1_024
"""Sessions whose system prompt is kept, those used last (G10)."""

_PROMPT_LIFE = 30 * 86_400_000
"""Milliseconds after its last use for which it is."""

_TOO_MANY = """
delete from prompts where used_at < ? or slot in (
    select slot from prompts order by used_at desc limit -1 offset ?)
"""
_OLD = "delete from turns where at <= (select at from turns order by at desc limit 1 offset ?)"
_PLACE = "select id, root, parent, epoch from sessions where slot = ?"


class HostSessions:
    """Sessions by scope and id. Safe to call from any thread.

    Args:
        path: the file; made if missing. A damaged one is set aside and begun anew: what is lost
            is only which root a resumed session continues, and that is logged.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            SpoolError: it cannot be written.
        """
        self._path = path
        self._undisturbed = sqlite_guard()
        self._lock = ProcessLock()
        self._left: list[sqlite3.Connection] = []
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
        """After a fork: a SQLite connection must not be used, nor closed, in the child."""
        if os.getpid() != self._pid:
            self._left.append(self._db)
            self._reopen()

    def get(self, scope: Scope, session_id: str) -> SessionRef | None:
        """Return a session's place in its lineage, or None if this host has not seen it."""
        slot = (recall_slot(scope, session_id),)
        with self._lock.here():
            self._check_process()
            with self._undisturbed:
                row = self._db.execute(_PLACE, slot).fetchone()
        return SessionRef(*row) if row else None

    def put(self, scope: Scope, ref: SessionRef) -> None:
        """Remember a session's place.

        Raises:
            SpoolError: the disk is full.
        """
        row = (recall_slot(scope, ref.id), ref.id, ref.root, ref.parent, ref.epoch)
        self._run(("replace into sessions values (?, ?, ?, ?, ?)", row))

    def turns(self, slot: str) -> bytes:
        """Return what was noted of a session's turns (`keys.recall_slot`), b"" if nothing."""
        with self._lock.here():
            self._check_process()
            with self._undisturbed:
                found = self._db.execute("select body from turns where slot = ?", (slot,))
                row = found.fetchone()
        return bytes(row[0]) if row else b""

    def keep_turns(self, slot: str, body: bytes, at: int, most: int) -> None:
        """Note a session's turns; of more than `most` sessions the oldest notes go (G10).

        Raises:
            SpoolError: the disk is full.
        """
        self._run(("replace into turns values (?, ?, ?)", (slot, at, body)), (_OLD, (most,)))

    def prompt(self, scope: Scope, root: str, now: int) -> str | None:
        """Return what the sessions of a lineage have in their system prompt, None if nothing yet.

        Args:
            scope: who they belong to.
            root: the lineage's.
            now: milliseconds; the time of this use.

        Raises:
            SpoolError: the file cannot be read or written.
        """
        slot = recall_slot(scope, root)
        [[text]] = self._run(
            ("update prompts set used_at = ? where slot = ?", (now, slot)),
            ("select (select text from prompts where slot = ?)", (slot,)),
        )
        return None if text is None else str(text)

    def keep_prompt(self, scope: Scope, root: str, text: str, now: int) -> str:
        """Keep what a lineage has in its system prompt, for its life, and return it.

        Another process may have been first: what it kept is returned then.

        Raises:
            SpoolError: see `prompt`.
        """
        slot = recall_slot(scope, root)
        [[kept]] = self._run(
            ("insert or ignore into prompts values (?, ?, ?)", (slot, now, text)),
            (_TOO_MANY, (now - _PROMPT_LIFE, _PROMPTS)),
            ("select text from prompts where slot = ?", (slot,)),
        )
        return str(kept)

    def _run(self, *steps: tuple[str, tuple[str | int | bytes, ...]]) -> list[tuple[Any, ...]]:
        """Return the rows of the last of several statements."""
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
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.executescript(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db
