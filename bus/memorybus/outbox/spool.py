"""The spool: a producer's local SQLite outbox. An event is in it before `publish` returns (G1).

There is one file per producer, held by a file lock that ends with its process. Its name is the
producer's id, and a row's key is its sequence, which is never used twice. The spool remembers what
was deleted, by partition, so that a loss in Redis can be told from a resend.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import msgspec
from filelock import FileLock

from memorybus import private
from memorybus.clock import Clock
from memorybus.concurrency.forking import sqlite_guard
from memorybus.errors import SpoolCorrupt, SpoolError, SpoolFull
from memorybus.msgspec_types import prepared
from memorybus.outbox import database
from memorybus.outbox.database import (
    ROW_OVERHEAD,
    SpoolRow,
    connect,
    spool_errors,
    take_up_to,
    transaction,
    translate_sqlite_error,
)
from memorybus.receipt import SpoolStats

NOTE_SUFFIX = ".unsent"  # suffix of the file that says what is unsent
SENT_SUFFIX = ".sent"
"""Suffix of the file that says since when a spool without an owner had nothing to send."""

PER_MS = 1_024  # sequences per millisecond: a sequence tells the time at which it was assigned
DELIVERED_SUFFIX = ".delivered"
"""Suffix of the file that says up to which sequence rows may have been delivered."""

RESERVE_SUFFIX = ".reserve"  # suffix of the file
_NOTE_BYTES = 128
_ANNOUNCED_SEQUENCES = 10_000 * PER_MS
"""Sequences that are announced at once, those of ten seconds, so the file is seldom written."""

_NUMBER_WIDTH = 20
_MAX_SEQUENCE = 2**53
_DELETED_AT_ONCE = 500
_CHECKPOINT_EVERY = 3 << 19
"""Bytes of rows between checkpoints: what a checkpoint writes must fit into the disk reserve."""

_MAX_LOG_FRAMES = 4_096  # frames of 8 KiB that the write-ahead log may have before it is begun anew


def spooled_at(sequence: int) -> int:
    """Return the wall time (ms) at which a sequence was assigned."""
    return sequence // PER_MS


def write_note(spool: Path, stats: SpoolStats) -> None:
    """Write the note in place, always with the same length: a full disk has no room for another."""
    note = spool.with_suffix(NOTE_SUFFIX)
    mode = "r+b" if note.exists() else "wb"
    with suppress(OSError), open(note, mode, opener=private.opener) as file:
        file.write(msgspec.json.encode(stats).ljust(_NOTE_BYTES))


def read_note(spool: Path) -> SpoolStats:
    try:
        return msgspec.json.decode(
            spool.with_suffix(NOTE_SUFFIX).read_bytes(), type=prepared(SpoolStats)
        )
    except (OSError, msgspec.MsgspecError):
        return SpoolStats()


class PossiblyDelivered:
    """The rows that Redis may have taken from a spool, by partition. Belongs to the sending thread.

    A lane may have applied an event that Redis lost afterwards. So an event that is sent again says
    so in the log (`LoggedEvent.resent`), and a ``lookup`` provider is asked first (G4). A file
    beside the spool tells the next owner; it keeps its length, for a full disk. Without it, every
    row in the spool counts as delivered.
    """

    def __init__(self, spool: Path, last: int, *, empty: bool) -> None:
        self._file = spool.with_suffix(DELIVERED_SUFFIX)
        self._announced = _read_delivered(self._file)
        if self._announced is None and empty:
            self._announced = 0
        self._before = last
        if self._announced is not None:
            self._before = self._announced = min(last, self._announced)
            _write_delivered(self._file, self._announced, durable=False)
        self._by_partition: dict[int, int] = {}

    def upto(self, partition: int) -> int:
        """Return the last sequence that Redis may have taken; a later row was never sent."""
        return self._by_partition.get(partition, self._before)

    def note(self, partition: int, sequence: int) -> None:
        """Note that Redis took a partition's rows up to a sequence, or may have."""
        self._by_partition[partition] = max(sequence, self.upto(partition))

    def announce(self, sequence: int) -> None:
        """Note for the next owner that rows up to a sequence are about to be sent."""
        if self._announced is None or sequence > self._announced:
            self._announced = sequence + _ANNOUNCED_SEQUENCES
            _write_delivered(self._file, self._announced, durable=True)


def _read_delivered(file: Path) -> int | None:
    try:
        return int(file.read_bytes())
    except (OSError, ValueError):
        return None


def _write_delivered(file: Path, sequence: int, *, durable: bool) -> None:
    try:
        with open(file, "r+b" if file.exists() else "wb", opener=private.opener) as out:
            out.write(f"{sequence:0{_NUMBER_WIDTH}d}".encode())
            out.flush()
            if durable:
                os.fsync(out.fileno())
    except OSError:
        file.unlink(missing_ok=True)


class DiskReserve:
    """A file that is deleted when the disk is full, so that the spool can still be sent."""

    def __init__(self, spool: Path, size: int) -> None:
        self._path = spool.with_suffix(RESERVE_SUFFIX)
        self._size = size

    def restore(self) -> bool:
        if not self._path.exists():
            try:
                _allocate(self._path, self._size)
            except OSError:
                self.give_up()
                return False
        return True

    def give_up(self) -> None:
        self._path.unlink(missing_ok=True)


def _allocate(path: Path, size: int) -> None:
    """Make a file that reserves room on its disk.

    Linux reserves the room without a write. That takes 0.02 ms for 4 MiB instead of 10 ms, and
    works even where a file system would compress zeros to nothing.
    """
    with open(path, "wb", opener=private.opener) as file:
        if sys.platform == "linux" and size:
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.write(b"\0" * size)


class Spool:
    """One producer's outbox, owned by this process.

    `append` may be called from any thread; the reading side belongs to one thread.
    """

    def __init__(
        self, path: Path, lock: FileLock, *, max_bytes: int, disk_reserve: int, clock: Clock
    ) -> None:
        """Open the file, which `lock` says is ours.

        A sequence is the wall time in 1/1024 milliseconds, or the last one's successor if that is
        larger: so none is used twice, even if a power cut took the last rows.
        """
        self.path = path
        self.producer = path.stem
        self._file_lock = lock
        self._max_bytes = max_bytes
        self._clock = clock
        self._reserve = DiskReserve(path, disk_reserve)
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._guard = sqlite_guard()
        self._since_checkpoint = 0
        self._disk_full = False
        self._noted = SpoolStats()
        with spool_errors(path), ExitStack() as opened:
            self._in = opened.enter_context(closing(connect(path)))
            self._out = opened.enter_context(closing(connect(path)))
            database.check_for_damage(self._in, path)
            self._in.executescript(database.SCHEMA)
            self._load_counters()
            write_note(self.path, SpoolStats())
            opened.pop_all()  # no error: they stay open
        self.possibly_delivered = PossiblyDelivered(path, self.last, empty=not self._rows)
        self._reserve.restore()

    def _load_counters(self) -> None:
        last = self._in.execute("select max(seq) from events").fetchone()[0] or 0
        gone = self._in.execute("select max(seq) from deleted").fetchone()[0] or 0
        self.last: int = max(last, gone, self._clock.now_ms() * PER_MS)
        self._given = self.last
        count, size = self._in.execute("select count(*), sum(length(body)) from events").fetchone()
        self._rows: int = count
        self._bytes: int = (size or 0) + count * ROW_OVERHEAD

    # -- the publishing side --------------------------------------------------------------------

    def append(
        self, partition: int, event_id: bytes, digest: bytes, body: bytes, *, durable: bool = False
    ) -> int:
        """Store an event and return its sequence (G1); with `durable` it survives a power cut."""
        size = len(body) + ROW_OVERHEAD
        with self._writing:
            if self._bytes + size > self._max_bytes or self._disk_full:
                raise SpoolFull(self._full_message())
            sequence = self._next_sequence()
            self._guard.inside.add(thread := threading.get_ident())  # a `with` is two calls more
            try:
                if self._guard.forks:
                    self._guard.wait()
                if durable:
                    self._in.execute("pragma synchronous = full")
                self._in.execute(database.INSERT, (sequence, partition, event_id, digest, body))
            except sqlite3.Error as error:
                raise self._meaning(error) from error
            finally:
                if durable:
                    self._in.execute("pragma synchronous = normal")
                self._guard.inside.discard(thread)
            self.last = sequence
            self._rows += 1
            self._bytes += size
            self._since_checkpoint += size
        return sequence

    def _next_sequence(self) -> int:
        sequence = max(self._given + 1, self._clock.now_ms() * PER_MS)
        if sequence > _MAX_SEQUENCE:
            raise SpoolError(f"{self.path}: the clock is far ahead: Redis cannot count so high")
        self._given = sequence  # before the insert: an interrupted insert may still have happened
        return sequence

    def _meaning(self, error: sqlite3.Error) -> SpoolCorrupt | SpoolFull:
        meaning = translate_sqlite_error(self.path, error)
        if isinstance(meaning, SpoolFull):
            self._give_up_reserve()
        return meaning

    def _full_message(self) -> str:
        if self._disk_full:
            return f"{self.path}: the disk is full, so the event was not accepted; make room on it"
        return (
            f"{self.path}: {self._rows} events ({self._bytes} bytes) wait for Redis, and the bound "
            f"`spool_max_bytes` is {self._max_bytes}, so the event was not accepted. Bring Redis "
            f"back (see memorybus doctor) or raise the bound"
        )

    def start_above(self, sequence: int) -> None:
        """Use only sequences above this one from now on."""
        with self._writing:
            self._given = max(self._given, sequence)

    def save(self, rows: Iterable[SpoolRow]) -> int:
        """Take over a damaged spool's rows, all or none; they count as possibly delivered."""
        with self._writing, spool_errors(self.path):
            with transaction(self._in):
                for row in rows:
                    self._in.execute(database.INSERT, (self._next_sequence(), *row[1:]))
            self._load_counters()
            self.path.with_suffix(DELIVERED_SUFFIX).unlink(missing_ok=True)
            self.possibly_delivered = PossiblyDelivered(self.path, self.last, empty=False)
            return self._rows

    # -- the sending side -----------------------------------------------------------------------

    def rows_after(
        self, sequence: int, count: int, max_bytes: int, partition: int | None = None
    ) -> list[SpoolRow]:
        with self._reading, spool_errors(self.path):
            if partition is None:
                cursor = self._out.execute(database.AFTER, (sequence, count))
            else:
                cursor = self._out.execute(
                    database.AFTER_OF_PARTITION, (sequence, partition, count)
                )
            return take_up_to(cursor, max_bytes)

    def deleted_sequences(self) -> dict[int, int]:
        """Return by partition the last sequence that was deleted, because Redis had taken it."""
        with self._reading, spool_errors(self.path):
            return dict(self._out.execute("select partition, seq from deleted").fetchall())

    def delete_upto(self, sequence: int) -> None:
        """Delete rows that Redis has had long enough, few at a time: `append` never waits long."""
        while self._delete_some(sequence) == _DELETED_AT_ONCE:
            pass

    def _delete_some(self, sequence: int) -> int:
        with self._writing, spool_errors(self.path):
            upto, count, size = self._in.execute(
                "select max(seq), count(*), sum(length(body)) from "
                "(select seq, body from events where seq <= ? order by seq limit ?)",
                (sequence, _DELETED_AT_ONCE),
            ).fetchone()
            if count:
                self._delete_rows(upto)
                self._rows -= count
                self._bytes -= size + count * ROW_OVERHEAD
                self._since_checkpoint += size
        return int(count)

    def _delete_rows(self, upto: int) -> None:
        with transaction(self._in):
            self._in.execute(
                "insert into deleted select partition, max(seq) from events where seq <= ? "
                "group by partition on conflict(partition) do update set seq = excluded.seq",
                (upto,),
            )
            self._in.execute("delete from events where seq <= ?", (upto,))

    def tidy(self) -> None:
        """Move the write-ahead log into the file when it has grown; appends go on meanwhile.

        On a full disk the disk reserve makes room for that. No event is accepted then, until there
        is room for the reserve again or the spool is empty.
        """
        if self._since_checkpoint >= _CHECKPOINT_EVERY or self._disk_full:
            self._checkpoint()
        if self._reserve.restore() or not self._rows:
            self._disk_full = False

    def _checkpoint(self) -> None:
        try:
            with self._reading, spool_errors(self.path):
                frames = self._move_log()
            if frames > _MAX_LOG_FRAMES:
                # SQLite begins its log anew only once all of it is in the file. Under load there is
                # always a newer frame, so appends wait here while the last ones are moved.
                with self._writing, self._reading, spool_errors(self.path):
                    self._move_log()
            self._since_checkpoint = 0
        except SpoolFull:
            self._give_up_reserve()

    def _move_log(self) -> int:
        """Move what is in the write-ahead log into the file; return how many frames the log has."""
        _, frames, _ = self._out.execute("pragma wal_checkpoint(passive)").fetchone()
        return int(frames)

    def _give_up_reserve(self) -> None:
        """Free the reserve and refuse new events: the room is for sending what the spool holds."""
        self._disk_full = True
        self._reserve.give_up()

    def count_after(self, sequence: int) -> int:
        with self._writing, spool_errors(self.path):
            cursor = self._in.execute("select count(*) from events where seq > ?", (sequence,))
            return int(cursor.fetchone()[0])

    # -- where it was made ----------------------------------------------------------------------

    def sign(self) -> None:
        with spool_errors(self.path):
            database.sign(self._in, self.path)

    def is_original(self) -> bool:
        """Return whether this file was made on this host, and is not a copy from another one."""
        with self._reading, spool_errors(self.path):
            return database.is_signed(self._out, self.path)

    # -- what is in it --------------------------------------------------------------------------

    def note_unsent(self, cursor: int) -> None:
        """Write beside the file what is unsent, for other processes, which cannot open it."""
        with self._reading, spool_errors(self.path):
            count, size = self._out.execute(
                "select count(*), sum(length(body)) from events where seq > ?", (cursor,)
            ).fetchone()
            oldest = self._out.execute(database.AFTER, (cursor, 1)).fetchone()
        stats = SpoolStats(count, size or 0, spooled_at(oldest[0]) if oldest else None)
        if stats != self._noted:
            self._noted = stats
            write_note(self.path, stats)

    @property
    def size(self) -> int:
        """Bytes of the rows kept, sent ones included."""
        return self._bytes

    def close(self) -> None:
        """Close the file and give up the lock; what is unsent stays."""
        self.detach().release()

    def detach(self) -> FileLock:
        """Close the file but keep the lock, so that the file can be set aside.

        A read that goes on ends first: SQLite brings the whole process down if a connection is
        closed while another thread uses it.
        """
        with self._writing, self._reading, self._guard:
            self._in.close()
            self._out.close()
        return self._file_lock

    def discard(self) -> None:
        remove_files(self.path)
        self.close()
        Path(self._file_lock.lock_file).unlink(missing_ok=True)


def remove_files(path: Path) -> None:
    for suffix in (
        ".db",
        ".db-wal",
        ".db-shm",
        RESERVE_SUFFIX,
        NOTE_SUFFIX,
        SENT_SUFFIX,
        DELIVERED_SUFFIX,
    ):
        path.with_suffix(suffix).unlink(missing_ok=True)
