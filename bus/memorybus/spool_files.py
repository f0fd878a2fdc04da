"""Who owns which spool file: claim one at the start, adopt those that dead processes left.

A spool is owned by whoever holds the lock file beside it; the operating system drops the lock
with the process. A damaged file is set aside as ``<name>.corrupt`` and what can be read of it
goes on in a new one (G1).
"""

import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

from filelock import FileLock, Timeout

from memorybus.clock import SYSTEM, Clock
from memorybus.errors import SpoolCorrupt, SpoolError
from memorybus.ids import NewId
from memorybus.settings import Settings
from memorybus.spool import SENT, Row, Spool
from memorybus.spool_db import salvaging
from memorybus.spool_handed import HANDED
from memorybus.spool_note import NOTE, SpoolStats, read_note, spooled_at

_log = logging.getLogger("memorybus")


_WHOLE_ROWS = (
    "select seq, partition, id, digest, body from events where typeof(partition) = 'integer' "
    "and typeof(id) = 'blob' and typeof(digest) = 'blob' and typeof(body) = 'blob'"
)


class SpoolFiles:
    """The spools of one host; `of` reads the settings.

    Args:
        directory: where they lie.
        new_id: names new ones.
        max_bytes: bound of each.
        ballast: size of the file each gives up on a full disk.
        clock: time.
    """

    def __init__(
        self,
        directory: Path,
        new_id: NewId,
        *,
        max_bytes: int,
        ballast: int,
        clock: Clock = SYSTEM,
    ) -> None:
        """Touch nothing yet."""
        self._clock = clock
        self.directory = directory
        self._new_id = new_id
        self._max_bytes = max_bytes
        self._ballast = ballast

    @classmethod
    def of(cls, settings: Settings, new_id: NewId, clock: Clock) -> Self:
        """Return the spools that these settings name."""
        return cls(
            settings.spool_dir,
            new_id,
            max_bytes=settings.spool_max_bytes,
            ballast=settings.spool_ballast,
            clock=clock,
        )

    def claim(self) -> Spool:
        """Return a spool of our own: one that a dead process left, else a new one.

        Raises:
            SpoolError: the directory cannot be written.
        """
        spool = next(self.adopted(), None) or self._create()
        spool.path.with_suffix(SENT).unlink(missing_ok=True)
        return spool

    def adopted(self) -> Iterator[Spool]:
        """Take over the spools whose owner is dead, one after another, oldest first."""
        for path in sorted(self.directory.glob("*.db")):
            spool = self._adopt(path)
            if spool is not None:
                yield spool

    def _adopt(self, path: Path) -> Spool | None:
        try:
            lock = _locked(path)
        except OSError as error:
            _log.warning("%s: %s; left alone", path, error)
            return None
        if lock is None:
            return None
        if not path.is_file():  # its owner discarded it between our look and our lock
            _let_go(path, lock)
            return None
        return self._taken_over(path, lock)

    def _taken_over(self, path: Path, lock: FileLock) -> Spool | None:
        try:
            return self._opened(path, lock)
        except SpoolCorrupt as error:
            return self._replaced(path, lock, str(error))
        except SpoolError as error:  # not ours to read, or a full disk: others must not suffer
            _log.warning("%s; left alone", error)
            lock.release()
            return None

    def replace(self, spool: Spool, why: str) -> Spool:
        """Set a damaged spool of ours aside; return another with what could be read of it."""
        return self._replaced(spool.path, spool.detach(), f"{spool.path}: {why}")

    def _opened(self, path: Path, lock: FileLock) -> Spool:
        return Spool(
            path,
            lock,
            max_bytes=self._max_bytes,
            ballast=self._ballast,
            clock=self._clock,
        )

    def _create(self) -> Spool:
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self.directory / f"{self._new_id()}.db"
            lock = _locked(path)
        except OSError as error:
            raise SpoolError(
                f"{self.directory}: {error}; set `data_dir` to a place that can be written"
            ) from error
        if lock is None:
            raise SpoolError(f"{path}: a new spool is already locked")
        return self._opened(path, lock)

    def _replaced(self, path: Path, lock: FileLock, why: str) -> Spool:
        fresh = self._create()
        rows = _readable(path)
        for _, partition, event_id, digest, body in rows:
            sequence = fresh.append(partition, event_id, digest, body)
            fresh.handed.note(partition, sequence)  # the damaged file cannot say
        aside = path.with_suffix(".corrupt")
        path.rename(aside)
        for suffix in (".db-wal", ".db-shm", ".ballast", NOTE, HANDED):
            path.with_suffix(suffix).unlink(missing_ok=True)
        lock.release()
        _log.error("%s; it is now %s, and %d events read from it go on", why, aside.name, len(rows))
        return fresh


def inspect(path: Path, taken: Mapping[int, int]) -> SpoolStats:
    """Count a spool's rows from outside, without owning it.

    Args:
        path: the file; one that vanishes or cannot be read counts as empty.
        taken: the last sequence that Redis has, by partition; rows at or below are sent.

    Returns:
        What is unsent: read from the file, or, while its owner lives, from the owner's note, which
        is at most some seconds old.
    """
    try:
        lock = _locked(path)  # held while we read, so that nobody opens the file beside us
    except OSError:
        return SpoolStats()
    if lock is None:
        return read_note(path)
    try:
        return _counted(path, taken)
    except sqlite3.Error:
        return read_note(path)
    finally:
        _let_go(path, lock)


def _counted(path: Path, taken: Mapping[int, int]) -> SpoolStats:
    where = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(where, uri=True, timeout=0)) as db:
        rows = db.execute("select seq, partition, length(body) from events order by seq")
        unsent = [(seq, size) for seq, partition, size in rows if seq > taken.get(partition, 0)]
        if not unsent:
            return SpoolStats()
    return SpoolStats(len(unsent), sum(size for _, size in unsent), spooled_at(unsent[0][0]))


def _let_go(path: Path, lock: FileLock) -> None:
    """Release a lock; one whose spool is gone is removed, for a name never comes again."""
    lock.release()
    if not path.exists():
        Path(lock.lock_file).unlink(missing_ok=True)


def _readable(path: Path) -> list[Row]:
    """Return what can still be read: from the front up to the damage, then from the back."""
    rows: dict[int, Row] = {}
    for order in ("asc", "desc"):
        sql = f"{_WHOLE_ROWS} order by seq {order}"
        with closing(salvaging(path)) as db, suppress(sqlite3.DatabaseError):
            for row in db.execute(sql):
                if row[0] in rows:
                    break
                rows[row[0]] = row
    return [rows[sequence] for sequence in sorted(rows)]


def _locked(path: Path) -> FileLock | None:
    lock = FileLock(path.with_suffix(".lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock
