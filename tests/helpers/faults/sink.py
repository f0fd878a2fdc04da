"""Sinks: providers of each delivery class whose log of effects hides nothing (G4).

One SQLite file per lane, in the directory that the options name (so that several worker processes
share it, as they would a remote backend) or in the instance's home. No constraint makes anything
unique: what is applied twice is there twice. Each class de-duplicates by what it declares and no
other way. Named as ``helpers.faults.sink:Keyed`` and the like. Of each effect the file says when
its call began and when it was stored, and by which process and thread; what a ``lookup`` sink was
asked is in files beside: so what came twice can be explained (`story`).

Options: ``directory``; ``busy``, the seconds for which a locked file is waited for.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memorybus.errors import Permanent
from memorybus.events import TurnCompleted
from memorybus.testing import no_crash
from memorybus_providers import ledger
from memorybus_providers.base import (
    Capabilities,
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    TransactionalProvider,
)

from helpers.faults import epochs
from helpers.faults.oracle import Effect

_SCHEMA = """
create table if not exists effects(
    id integer primary key, event_id text, key_ text, ordinal integer, lane integer, n integer,
    epoch integer, pid integer, at integer, said integer, sent integer, thread text,
    stored integer default (cast((julianday('now') - 2440587.5) * 86400000 as integer)));
create index if not exists by_event on effects(event_id);
create table if not exists refused(event_id text);
"""
_INSERT = (
    "insert into effects(event_id, key_, ordinal, lane, n, epoch, pid, at, said, sent, thread) "
    "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_NEW = _INSERT.replace(
    "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
    "where not exists (select 1 from effects where event_id = ?)",
)
_COLUMNS = "event_id, key_, ordinal, lane, n, epoch, pid, at, said"

_SMALL_CACHE = "pragma cache_size = -64"
"""KiB for each lane's file: SQLite's own 2 MiB fill up for minutes, like a leak of the worker."""

RAISES, HANGS, EXITS = "!raises", "!hangs", "!exits"
"""First words of a turn over which a sink's hook fails."""


def misbehave(text: str) -> None:
    """Fail as the first word of a text says."""
    word = text.partition(" ")[0]
    if word == RAISES:
        raise Permanent("the backend refuses this one")
    if word == HANGS:
        threading.Event().wait()
    if word == EXITS:
        os._exit(7)


class _File:
    """One lane's file: a connection, and the lock that lets several threads use it."""

    def __init__(self, path: Path, busy: float) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = off")  # the process dies here, not the machine
        self.db.execute(_SMALL_CACHE)
        self.db.executescript(_SCHEMA)
        self.lock = threading.Lock()


class _Struck:
    """Over which events earlier processes died in a call: no crash point strikes one again.

    An event that is under way alone at two deaths passes for deadly and is parked, as it should be
    (G6); a row whose crash points happened to fall on the same event would call that a loss.
    """

    def __init__(self, directory: Path) -> None:
        self._ids = {path.read_text() for path in directory.glob("under_way.*")}
        self._file = (directory / f"under_way.{os.getpid()}").open("wb", buffering=0)

    def may_strike(self, event_id: str) -> bool:
        """Say whether a process may die over an event; if so, the file names it from now on."""
        if event_id in self._ids:
            return False
        os.pwrite(self._file.fileno(), event_id.encode(), 0)
        return True

    def close(self) -> None:
        """Close the file; it stays for those that come later."""
        self._file.close()


class Blind(MemoryProvider):
    """Takes whatever it is given, each call a commit of its own."""

    kind = "sink"
    capabilities = Capabilities(recall=False, handles=frozenset({TurnCompleted}))

    def open(self) -> None:
        """Make the directory; a lane's file is opened when it is first needed."""
        epochs.watch()
        self._directory = Path(str(self.config.options.get("directory") or self.config.home))
        self._directory.mkdir(parents=True, exist_ok=True)
        self._files: dict[int, _File] = {}
        self._opening = threading.Lock()
        self._struck = None if self.config.crash is no_crash else _Struck(self._directory)

    def shutdown(self) -> None:
        for file in getattr(self, "_files", {}).values():
            file.db.close()
        if struck := getattr(self, "_struck", None):
            struck.close()

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Keep a row for a turn."""
        epoch = self._epoch(ctx.position.partition)  # first: who is stopped here may own no more
        sent = self.config.clock.now_ms()
        self._crash("sink.in_call", ctx.event_id)
        misbehave(event.user)
        file = self._file(ctx.position.partition)
        with self._translated(), file.lock:
            row = self._row(event, ctx, epoch)
            self._keep(file.db, (*row, sent, threading.current_thread().name))
        self._crash("sink.after_effect", ctx.event_id)

    def _crash(self, name: str, event_id: str) -> None:
        if self._struck and self._struck.may_strike(event_id):
            self.config.crash(name)

    def _keep(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        db.execute(_INSERT, row)

    def _row(self, event: TurnCompleted, ctx: HookContext, epoch: int) -> tuple[Any, ...]:
        where, now = ctx.position, self.config.clock.now_ms()
        of_event = (ctx.event_id, ctx.session.root, event.ordinal, where.partition, where.n)
        return (*of_event, epoch, os.getpid(), now, ctx.at)

    def _epoch(self, lane: int) -> int:
        return epochs.of(self.config.name, lane)

    def _file(self, lane: int) -> _File:
        with self._opening:
            if lane not in self._files:
                self._files[lane] = self._opened(lane)
            return self._files[lane]

    def _opened(self, lane: int) -> _File:
        with self._translated():
            busy = float(self.config.options.get("busy", 5))
            return _File(self._directory / f"p{lane:02d}.db", busy)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ledger.provider_error(error) from error


class Keyed(Blind):
    """The backend takes our event id as its key, and notes what it refused."""

    delivery = "keyed"

    def _keep(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        # One statement: a process that is stopped between a look and an insert would insert late.
        if not db.execute(_INSERT_NEW, (*row, row[0])).rowcount:
            db.execute("insert into refused values (?)", row[:1])


class Lookup(Blind):
    """The backend can be asked for an event; it takes the same one twice."""

    delivery = "lookup"

    def knows(self, event_id: str, ctx: HookContext) -> bool:
        """Ask, and note the answer; a yes also where the other classes note what they refused."""
        file = self._file(ctx.position.partition)
        with self._translated(), file.lock:
            known = _holds(file.db, event_id)
            self._note(event_id, known)
            if known:
                file.db.execute("insert into refused values (?)", (event_id,))
        return known

    def _note(self, event_id: str, known: bool) -> None:
        at, who = self.config.clock.now_ms(), threading.current_thread().name
        line = f"{event_id} {at} {os.getpid()} {who}: {'held' if known else 'not held'}\n"
        with (self._directory / f"asked.{os.getpid()}").open("a") as file:
            file.write(line)


class Many(Keyed):
    """As `Keyed`, called for several keys at once."""

    capabilities = Capabilities(recall=False, concurrent=True, handles=frozenset({TurnCompleted}))


def _spoiled(row: tuple[Any, ...]) -> bool:
    """Return whether a broken sink spoils this event: one in seven of each key, not by chance."""
    return int(row[2]) % 7 == 3


class Forgetful(Blind):
    """Broken: forgets one event in seven of each key."""

    def _keep(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        if not _spoiled(row):
            super()._keep(db, row)


class Doubling(Blind):
    """Broken: keeps one event in seven of each key twice."""

    def _keep(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        for _ in range(1 + _spoiled(row)):
            super()._keep(db, row)


class Muddled(Blind):
    """Broken: keeps one event in seven of each key after the next one of its key."""

    def _keep(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        late = self.__dict__.setdefault("_late", {})
        if _spoiled(row):
            late[row[1]] = row
            return
        for one in (row, late.pop(row[1], None)):
            if one is not None:
                super()._keep(db, one)


class Transactional(Blind, TransactionalProvider):
    """Effects, ledger and checkpoint in one transaction, which knows the owner's epoch."""

    delivery = "transactional"

    def open(self) -> None:
        super().open()
        self._ledgers: dict[int, ledger.Ledger] = {}
        self._fence = Fence("", 0)

    def _opened(self, lane: int) -> _File:
        file = super()._opened(lane)
        with self._translated():
            ledger.migrate(file.db)
        self._ledgers[lane] = ledger.Ledger(file.db)
        return file

    def _epoch(self, lane: int) -> int:
        return self._fence.epoch

    def progress(self, lane: str) -> Progress | None:
        file = self._file(_number(lane))
        with self._translated():
            return ledger.progress(file.db, lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Any]:
        """Open a transaction in the lane's file."""
        self._file(_number(fence.lane))
        self._fence = fence
        with self._ledgers[_number(fence.lane)].transaction(fence) as transaction:
            yield transaction


CLASSES = ("Transactional", "Keyed", "Lookup", "Blind")


def _number(lane: str) -> int:
    return int(lane[1:])


def _holds(db: sqlite3.Connection, event_id: str) -> bool:
    found = db.execute("select 1 from effects where event_id = ?", (event_id,))
    return found.fetchone() is not None


def effects(directory: Path) -> list[Effect]:
    """Return every effect that a sink's files hold, in order within each lane."""
    rows = _rows(directory, f"select {_COLUMNS} from effects order by id")
    return [Effect(*row) for row in rows]


def newest(directory: Path) -> list[Effect]:
    """Return the last effect of each lane."""
    rows = _rows(directory, f"select {_COLUMNS} from effects order by id desc limit 1")
    return [Effect(*row) for row in rows]


def count(directory: Path) -> int:
    """Return how many effects there are so far."""
    return sum(row[0] for row in _rows(directory, "select count(*) from effects"))


def story(directory: Path, event_id: str) -> list[str]:
    """Return what a sink's files say of one event: its effects, and each time it was asked for."""
    columns = "lane, n, epoch, pid, thread, said, sent, at, stored"
    rows = _rows(directory, f"select {columns} from effects where event_id = '{event_id}'")
    told = [f"effect: {dict(zip(columns.split(', '), row, strict=True))}" for row in rows]
    asked = [line for file in directory.glob("asked.*") for line in file.read_text().splitlines()]
    return told + [f"asked: {line}" for line in asked if line.startswith(f"{event_id} ")]


def refused(directory: Path) -> int:
    """Return how often a sink was sent what it already had, and said so."""
    return sum(row[0] for row in _rows(directory, "select count(*) from refused"))


def _rows(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for path in sorted(directory.glob("p*.db")):
        with closing(sqlite3.connect(path, timeout=10)) as db:
            if db.execute("select 1 from sqlite_master where name = 'refused'").fetchone():
                found += db.execute(sql).fetchall()
    return found
