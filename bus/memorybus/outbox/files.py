"""Ownership of spool files: a process claims one at its start and adopts those of dead processes.

A process owns a spool while it holds the lock file beside it; the operating system releases the
lock with the process. A damaged file is set aside as ``<name>.corrupt``, and what can be read of it
is copied into a new one (G1). A copy of a spool is sent, but nobody appends to it: Redis would take
the events of two hosts with one producer id for resends of each other.
"""

import logging
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Self
from urllib.parse import quote

from filelock import FileLock, Timeout

from memorybus import private
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import SpoolCorrupt, SpoolError, SpoolFull
from memorybus.ids import NewId
from memorybus.outbox.database import read_intact_rows
from memorybus.outbox.spool import SENT_SUFFIX, Spool, read_note, remove_files, spooled_at
from memorybus.receipt import SpoolStats

_log = logging.getLogger("memorybus")
CORRUPT_SUFFIX = ".corrupt"  # suffix of a damaged spool that was set aside
_SAVING_FACTOR = 2
"""Saving a damaged spool takes this many times its size: once in the WAL, once in the file."""


class SpoolFiles:
    """The spools of one host; `from_settings` reads the settings."""

    def __init__(
        self,
        directory: Path,
        new_id: NewId,
        *,
        max_bytes: int,
        disk_reserve: int,
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self.directory = directory
        self._new_id = new_id
        self._max_bytes = max_bytes
        self._disk_reserve = disk_reserve
        self._reported: set[Path] = set()

    @classmethod
    def from_settings(cls, settings: Settings, new_id: NewId, clock: Clock) -> Self:
        return cls(
            settings.spool_dir,
            new_id,
            max_bytes=settings.spool_max_bytes,
            disk_reserve=settings.spool_reserve,
            clock=clock,
        )

    def claim(self) -> Spool:
        """Return a spool for this process: one that a dead process left here, or a new one."""
        spool = self._inherit() or self._create()
        spool.path.with_suffix(SENT_SUFFIX).unlink(missing_ok=True)
        return spool

    def _inherit(self) -> Spool | None:
        for spool in self.adopt_all():
            try:
                if spool.is_original() and spool.size <= self._max_bytes:
                    return spool
            except (SpoolError, OSError) as error:
                self.report(spool.path, error)
            spool.close()  # a copy, or above the bound: it is only sent
        return None

    def adopt_all(self) -> Iterator[Spool]:
        """Take over the spools whose owner is dead, one after another, oldest first."""
        for path in sorted(self.directory.glob("*.db")):
            spool = self._adopt(path)
            if spool is not None:
                yield spool

    def _adopt(self, path: Path) -> Spool | None:
        try:
            lock = _try_lock(path)
        except OSError as error:
            self.report(path, f"{path}: {error}")
            return None
        if lock is None:
            return None
        if not path.is_file():  # its owner discarded it before we had the lock
            _release_lock(path, lock)
            return None
        return self._take_over(path, lock)

    def _take_over(self, path: Path, lock: FileLock) -> Spool | None:
        try:
            return self._open(path, lock)
        except SpoolCorrupt as error:
            return self._set_aside(path, lock, str(error))
        except (SpoolError, OSError) as error:  # we may not read it, or the disk is full
            self.report(path, error)
            lock.release()
            return None

    def replace(self, spool: Spool, why: str) -> Spool:
        """Set a damaged spool of ours aside; return another with what could be read of it."""
        return self.set_aside(spool, why) or self._create()

    def set_aside(self, spool: Spool, why: str) -> Spool | None:
        """Set a damaged spool of ours aside; return another with what could be read of it."""
        lock = spool.detach()
        if not lock.is_locked:
            return None  # another thread has done so
        return self._set_aside(spool.path, lock, f"{spool.path}: {why}")

    def _open(self, path: Path, lock: FileLock) -> Spool:
        return Spool(
            path,
            lock,
            max_bytes=self._max_bytes,
            disk_reserve=self._disk_reserve,
            clock=self._clock,
        )

    def _create(self) -> Spool:
        try:
            private.directory(self.directory)
            path = self.directory / f"{self._new_id()}.db"
            lock = _try_lock(path)
        except OSError as error:
            raise SpoolError(
                f"{self.directory}: {error}; set `data_dir` to a place that can be written"
            ) from error
        if lock is None:
            raise SpoolError(f"{path}: another process has locked this new spool; try again")
        try:
            spool = self._open(path, lock)
            spool.sign()
        except BaseException:
            remove_files(path)
            _release_lock(path, lock)
            raise
        return spool

    def _set_aside(self, path: Path, lock: FileLock, why: str) -> Spool | None:
        try:
            saved, count = self._save_readable(path)
        except (SpoolError, OSError) as error:
            self.report(path, f"{why}; its readable rows cannot be saved: {error}")
            lock.release()
            return None
        remove_files(path)
        lock.release()
        aside = path.with_suffix(CORRUPT_SUFFIX).name
        _log.error("%s; it is now %s, and %d events read from it will be sent", why, aside, count)
        return saved

    def _save_readable(self, path: Path) -> tuple[Spool, int]:
        files = (path, path.with_suffix(".db-wal"))
        need = _SAVING_FACTOR * sum(file.stat().st_size for file in files if file.exists())
        if shutil.disk_usage(self.directory).free < need + self._disk_reserve:
            raise SpoolFull(f"the disk has no room for a copy of {need} bytes; make room on it")
        fresh = self._create()
        try:
            count = fresh.save(read_intact_rows(path))
            path.rename(path.with_suffix(CORRUPT_SUFFIX))
        except BaseException:
            fresh.discard()
            raise
        return fresh, count

    def report(self, path: Path, why: object) -> None:
        """Log once why a spool is left alone; another attempt follows every few seconds."""
        if path not in self._reported:
            self._reported.add(path)
            _log.warning("%s; left alone", why)


def inspect_spool(path: Path, taken: Mapping[int, int]) -> SpoolStats:
    """Count a spool's rows from outside; while its owner lives, its latest note counts."""
    try:
        lock = _try_lock(path)  # held while we read, so that nobody opens the file beside us
    except OSError:
        return SpoolStats()
    if lock is None:
        return read_note(path)
    try:
        return _count_unsent(path, taken)
    except sqlite3.Error:
        return read_note(path)
    finally:
        _release_lock(path, lock)


def _count_unsent(path: Path, taken: Mapping[int, int]) -> SpoolStats:
    where = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(where, uri=True, timeout=0)) as db:
        rows = db.execute("select seq, partition, length(body) from events order by seq")
        events, total, oldest_at = 0, 0, None
        for sequence, partition, size in rows:  # one by one: there may be millions
            if sequence > taken.get(partition, 0):
                events, total = events + 1, total + size
                oldest_at = oldest_at or spooled_at(sequence)
    return SpoolStats(events, total, oldest_at)


def _release_lock(path: Path, lock: FileLock) -> None:
    lock.release()
    if not path.exists():
        Path(lock.lock_file).unlink(missing_ok=True)


def _try_lock(path: Path) -> FileLock | None:
    lock = FileLock(path.with_suffix(".lock"), timeout=0, mode=private.FILE, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock
