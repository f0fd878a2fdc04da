"""Notes on a home's memory files as this host last saw them: two small files below `data_dir`.

``….json`` is replaced as a whole, under a lock between processes. ``….heard`` is a journal of the
writes that hooks have reported since. A hook only appends a line, so that even if its process ends
right after it, the write is not taken for a change by somebody else.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec
from filelock import FileLock, Timeout
from memorybus import private
from memorybus.msgspec_types import prepared

from memorybus_hermes.scopes import FileEntries, FileWrite, apply_write

_log = logging.getLogger("memorybus")

_MAX_JOURNAL_BYTES = 1 << 20  # how many bytes the journal may have before it is emptied (G10)

Signature: TypeAlias = tuple[int, int, int]
"""Time of change (ns), size and inode of a file; zeros if it is missing."""

NO_FILE: Signature = (0, 0, 0)


class SeenFiles(msgspec.Struct, omit_defaults=True):
    """A home's memory files as they were last seen (stored as JSON).

    Attributes:
        entries: the entries by store, including the writes that hooks have reported since.
        signatures: the files' signatures by store; a store that was never read has none.
    """

    revision: int = 0  # how often a change was found
    entries: dict[str, FileEntries] = {}
    signatures: dict[str, Signature] = {}
    users: tuple[str, ...] = ()  # the people who talked to this home, two at most
    heard: int = 0  # how many bytes of the journal are applied to `entries`


class FileNotes:
    """The two files. One thread at a time may use them; any thread may call `append`.

    Args:
        path: both files without their suffix.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".json")
        self._journal = path.with_name(path.name + ".heard")
        self._lock = FileLock(
            path.with_name(path.name + ".lock"), mode=private.FILE, thread_local=False
        )

    def append(self, write: FileWrite) -> None:
        """Append a write that a hook reported.

        Raises:
            OSError: the journal cannot be written; the next check of the file finds the write.
        """
        line = msgspec.json.encode(write) + b"\n"
        journal = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(journal, line)
        finally:
            os.close(journal)

    @contextmanager
    def locked(self) -> Iterator[SeenFiles | None]:
        """Lock and read the notes, and write them at the end of the block unless it raises.

        Yield None if another process holds the lock.

        Raises:
            OSError: the notes cannot be written.
        """
        private.directory(self._path.parent)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            yield None
            return
        try:
            noted = self._read()
            self._apply_journal(noted)
            yield noted
            self._write(noted)
        finally:
            self._lock.release()

    def _read(self) -> SeenFiles:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=prepared(SeenFiles))
        except FileNotFoundError:
            return SeenFiles()
        except msgspec.MsgspecError as error:
            _log.warning("memorybus: %s: %s; all entries count as new", self._path, error)
            return SeenFiles()

    def _apply_journal(self, noted: SeenFiles) -> None:
        """Apply new lines of the journal; an incomplete last line is left for the next time."""
        try:
            journal = self._journal.read_bytes()[noted.heard :]
        except FileNotFoundError:
            return
        whole = journal[: journal.rfind(b"\n") + 1]
        for line in whole.splitlines():
            write = msgspec.json.decode(line, type=prepared(FileWrite))
            noted.entries[write.store] = apply_write(noted.entries.get(write.store, ()), write)
        noted.heard += len(whole)

    def _write(self, noted: SeenFiles) -> None:
        begin_anew = noted.heard > _MAX_JOURNAL_BYTES
        if begin_anew:
            noted.heard = 0
        new = self._path.with_suffix(".new")
        private.write(new, msgspec.json.encode(noted))
        new.replace(self._path)
        if begin_anew:
            os.truncate(self._journal, 0)
