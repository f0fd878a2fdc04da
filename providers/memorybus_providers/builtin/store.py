"""Commits checkpoint, ledger and pending writes in one SQLite transaction, then writes the files.

A batch has these steps:

1. under the database's write lock, the lane's epoch is checked, and hooks only collect writes;
2. a token is placed next to each file that will change (see `files`);
3. one commit stores ledger, checkpoint, and for each file one row of pending writes;
4. under the lock again, the *present* file is read, the row's writes are applied to it, and the
   token with the new text is renamed onto it; then the row is deleted.

A row contains writes and not the file's new text, so that nothing is lost of what a person changes
before step 4, even while the worker is down after step 3: the writes are applied to the person's
text. A crash before step 3 leaves only a token without a row. A crash after it is repaired at the
next `open` or transaction of any process: rows whose token exists are applied, and the others are
done. So a write is never doubled and never lost (G4), even at a power failure: the commit is synced
before the rename, and the rename before the row is deleted.

Known limits: what an editor saves between the read and the rename of step 4 is overwritten, and a
symbolic link in the place of a memory file is replaced by a file.
"""

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from memorybus import private
from memorybus.errors import Permanent, Transient, Unavailable
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared
from memorybus.testing import CrashPoint

from memorybus_providers import ledger
from memorybus_providers.base import (
    Fence,
    MemoryOwner,
    Progress,
    RecallScope,
    Residue,
    Transaction,
)
from memorybus_providers.builtin import files
from memorybus_providers.builtin.entries import (
    Entries,
    EntryWrite,
    WriteOutcome,
    apply_writes,
    parse,
    render,
)
from memorybus_providers.builtin.files import MemoryFile, readable_files
from memorybus_providers.builtin.origins import EntryOrigin, Origins

_log = logging.getLogger(__name__)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(prepared(tuple[EntryWrite, ...])).decode


class Pending(msgspec.Struct, frozen=True):
    """Committed writes to one file; a ``seq`` is never used twice."""

    seq: int
    place: MemoryFile
    writes: tuple[EntryWrite, ...]


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


class BuiltinStore:
    """The files of one home and their database. One thread at a time."""

    def __init__(self, home: Path, crash: CrashPoint) -> None:
        self._home = home
        self._crash = crash
        self._connection: sqlite3.Connection | None = None
        self._collected: dict[MemoryFile, list[EntryWrite]] | None = None

    @property
    def path(self) -> Path:
        """The database."""
        return self._home / "state.db"

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RuntimeError(f"{self.path}: the provider is not open")
        return self._connection

    # -- life ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the database, create what is missing, and repair what a crash left.

        Raises:
            Transient: another process has locked the database.
            Unavailable: the directory or the database cannot be used; the message says why.
        """
        with reporting_errors(self._home):
            private.directory(self._home)
            private.file(self.path)
            self._connection = connect(self.path)
            self._ledger = ledger.Ledger(self._connection)
            self._origins = Origins(self._connection)
            self._repair_unless_busy()

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- writing ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Transaction]:
        """Commit collected writes with ledger and checkpoint, then write them into their files.

        Raises:
            LeaseLost: the store has seen a newer owner of the lane.
            Transient: the database is locked.
            Unavailable: the disk is full or a file cannot be written. If the commit was made, the
                ledger already contains the events, and the next transaction writes the files.
        """
        self.settle()
        self._collected = {}
        try:
            with self._ledger.transaction(fence) as transaction:
                yield transaction
                with reporting_errors(self._home):
                    self._stage(self._collected)
                self._crash("builtin.before_commit")
            self._crash("builtin.after_commit")
        finally:
            self._collected = None
        self.settle()

    def write(self, place: MemoryFile, write: EntryWrite) -> None:
        """Collect a write for the open transaction."""
        if self._collected is None:
            raise RuntimeError("a memory write outside a transaction would never be committed")
        self._collected.setdefault(place, []).append(write)

    def settle(self) -> None:
        """Write every committed write into its file, each file once per transaction."""
        with reporting_errors(self._home):
            if not self._pending():
                return
            with ledger.write_lock(self._db):
                rows = self._pending()
                for place in {row.place for row in rows}:
                    self._settle_place(place, [row for row in rows if row.place == place])

    def _settle_place(self, place: MemoryFile, rows: list[Pending]) -> None:
        """Write one file; if it cannot be written, its writes wait, and other files are written."""
        try:
            for row in rows:
                self._write_file(row)
            self._tidy(place)
        except LOCAL_ERRORS as error:
            _log.warning("%s: %s; its writes wait", place.file(self._home), error.strerror)
            return
        self._db.executemany("delete from pending where seq = ?", [(row.seq,) for row in rows])

    def _stage(self, collected: dict[MemoryFile, list[EntryWrite]]) -> None:
        for place, writes in collected.items():
            try:
                self._stage_place(place, writes)
            except LOCAL_ERRORS as error:
                raise Permanent(
                    f"{place.file(self._home)}: {error.strerror}; make it writable, then retry"
                ) from error

    def _stage_place(self, place: MemoryFile, writes: list[EntryWrite]) -> None:
        before = self.entries(place)
        _, outcomes = apply_writes(before, writes)
        self._count(place, writes, outcomes)
        self._origins.record(place, before, writes)
        row = self._db.execute(
            "insert into pending(store, folder, writes) values (?, ?, ?)",
            (place.store, place.folder, _encode(writes)),
        )
        files.place_token(self._home, place.file(self._home), row.lastrowid or 0)

    def _write_file(self, row: Pending) -> None:
        file = row.place.file(self._home)
        if not files.token_of(file, row.seq).exists():
            return
        before = parse(files.read(file))
        after, _ = apply_writes(before, row.writes)
        # If the entries are the same, the file stays as the person formatted it.
        files.consume_token(file, row.seq, None if after == before else render(after))
        self._crash("builtin.after_file")

    def _tidy(self, place: MemoryFile) -> None:
        file = place.file(self._home)
        files.remove_leftovers(file)
        self._origins.keep_only(place, parse(files.read(file)))

    # -- erasing ------------------------------------------------------------------------------

    def erase(self, scope: RecallScope) -> Residue:
        """Take all of a scope out of the files and the database, so that no byte of it is left.

        Raises:
            Transient: another process has locked the database.
            Unavailable: a file or the database cannot be written.
        """
        self.settle()
        erased, unknown = 0, 0
        reached = readable_files(self._home, scope.agent, scope.user)
        try:
            with reporting_errors(self._home), ledger.write_lock(self._db):
                for place in reached:
                    gone, doubtful = self._erase_from(place, scope)
                    erased, unknown = erased + gone, unknown + doubtful
        except LOCAL_ERRORS as error:
            raise Unavailable(f"{error}; make it writable, then ask again") from error
        with reporting_errors(self._home):
            self._db.execute("vacuum")
            self._db.execute("pragma wal_checkpoint(truncate)")
        strange = [folder for place in reached if (folder := place.left_over(self._home))]
        return Residue(erased, residue(unknown, strange))

    def _erase_from(self, place: MemoryFile, scope: RecallScope) -> tuple[int, int]:
        """Return how many entries of a file were erased, and how many have no known writer."""
        origins = self._origins.read(place)

        def is_theirs(entry: str) -> bool | None:
            return belongs_to(place, origins.get(text_digest(entry), EntryOrigin()), scope)

        kept, gone = take_out(self._home, place, lambda entry: is_theirs(entry) is True)
        self._origins.keep_only(place, kept)
        return gone, sum(is_theirs(entry) is None for entry in kept)

    # -- reading ------------------------------------------------------------------------------

    def progress(self, lane: str) -> Progress | None:
        """Return a lane's committed progress."""
        with reporting_errors(self._home):
            return ledger.progress(self._db, lane)

    def entries(self, place: MemoryFile) -> Entries:
        """Return the present entries of a file, including committed ones that are not yet in it.

        This takes no lock. If a write reaches the file meanwhile, its token disappears, and the
        file is read again. Each try sees fewer tokens, so the loop ends.
        """
        file = place.file(self._home)
        with reporting_errors(self._home):
            rows = [row for row in self._pending() if row.place == place]
            while True:
                waiting = self._unwritten(rows)
                text = files.read(file)
                rows = self._unwritten(rows)
                if rows == waiting:
                    break
        return apply_writes(parse(text), (write for row in rows for write in row.writes))[0]

    def origins(self, place: MemoryFile) -> dict[str, EntryOrigin]:
        """Return the origins of a file's entries, by `text_digest`, without those of people."""
        with reporting_errors(self._home):
            return self._origins.read(place)

    def owners(self, after: tuple[str, str, str]) -> Iterator[MemoryOwner]:
        """Yield the owners after `after` whose sessions brought entries."""
        with reporting_errors(self._home):
            yield from self._origins.owners(after)

    def outcomes(self) -> dict[WriteOutcome, int]:
        """Return how many writes had each outcome since the store was made."""
        with reporting_errors(self._home):
            return dict(self._db.execute("select outcome, n from outcomes"))

    def _pending(self) -> list[Pending]:
        rows = self._db.execute("select seq, store, folder, writes from pending order by seq")
        return [
            Pending(seq, MemoryFile(s, folder), _decode(writes)) for seq, s, folder, writes in rows
        ]

    def _unwritten(self, rows: Sequence[Pending]) -> list[Pending]:
        return [r for r in rows if files.token_of(r.place.file(self._home), r.seq).exists()]

    # -- bookkeeping --------------------------------------------------------------------------

    def _count(
        self, place: MemoryFile, writes: Sequence[EntryWrite], outcomes: Sequence[WriteOutcome]
    ) -> None:
        for write, outcome in zip(writes, outcomes, strict=True):
            if outcome in ("unmatched", "ambiguous", "empty"):
                _log.warning(
                    "%s/%s: %s of event %s: %s",
                    *(place.store, place.folder, write.action, write.event_id, outcome),
                )
        self._db.executemany(
            "insert into outcomes values (?, ?) on conflict(outcome) do update set n = n + "
            "excluded.n",
            Counter(outcomes).items(),
        )

    def _repair_unless_busy(self) -> None:
        # A process that has the lock writes the files itself, and a reader must not wait for it.
        self._db.execute("pragma busy_timeout = 0")
        try:
            self.settle()
        except Unavailable:
            raise
        except Transient:
            _log.info("%s: pending writes are left to the process that holds it", self.path)
        self._db.execute(f"pragma busy_timeout = {LOCK_WAIT_MS}")


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


def belongs_to(place: MemoryFile, origin: EntryOrigin, scope: RecallScope) -> bool | None:
    """Return whether an entry belongs to a scope; None if that is not known.

    Args:
        place: the entry's file, whose owner is the agent or the person of the scope.
        origin: the write that made the entry.
        scope: the scope whose entries are erased or exported.
    """
    others = (scope.user if place.store == "memory" else scope.agent, scope.workspace)
    if others == (None, None):
        return True
    if origin.user is None:
        return None
    asked = ((scope.agent, origin.agent), (scope.user, origin.user))
    return all(want is None or want == owned for want, owned in asked) and (
        scope.workspace is None or scope.workspace == origin.workspace
    )


def take_out(home: Path, place: MemoryFile, goes: Callable[[str], bool]) -> tuple[list[str], int]:
    """Take entries out of a file; if none is left, remove the file and its folder.

    Args:
        home: the home of the instance.
        goes: says whether an entry is taken out.

    Returns:
        The entries that stay, and how many were taken out.

    Raises:
        OSError: the file cannot be written.
    """
    file = place.file(home)
    before = parse(files.read(file))
    kept = [entry for entry in before if not goes(entry)]
    if len(kept) < len(before):
        files.replace_text(home, file, render(kept))
    if not kept:
        files.remove(file)
    return kept, len(before) - len(kept)


def residue(unknown: int, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return sentences about what an erasure leaves.

    Args:
        unknown: the number of entries whose writer is not known.
        folders: folders of erased owners that contain other files than ours.
    """
    said = [f"{folder} holds files of somebody else's making" for folder in folders]
    if unknown:
        said.append(
            f"{unknown} entries of other people's or agents' files have no known writer (written "
            "by hand): look through MEMORY.md and USER.md"
        )
    return tuple(said)
