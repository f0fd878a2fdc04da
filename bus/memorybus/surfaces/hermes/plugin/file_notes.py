"""What this host last saw of a home's memory files: two small files below `data_dir`.

``….json`` is replaced whole, under a lock between processes. ``….heard`` is a journal of the writes
that hooks told of since: a hook appends one line and is done, so that a process that ends right
after it does not take its own write for somebody else's.
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
from memorybus.surfaces.hermes.entries import Entries, FileWrite, after

_log = logging.getLogger("memorybus")

_LONGEST = 1 << 20
"""Bytes of the journal at which it is begun anew (G10)."""

Signature: TypeAlias = tuple[int, int, int]
"""Time of change (ns), size and inode of a file; zeros if it is missing."""

MISSING: Signature = (0, 0, 0)


class SeenFiles(msgspec.Struct, omit_defaults=True):
    """What was last seen of a home's files (stored as JSON).

    Attributes:
        revision: how often something was found.
        entries: by store; with what hooks told since.
        signatures: by store; a store that was never read has none.
        users: who talked to this home, two at most.
        heard: bytes of the journal that `entries` holds.
    """

    revision: int = 0
    entries: dict[str, Entries] = {}
    signatures: dict[str, Signature] = {}
    users: tuple[str, ...] = ()
    heard: int = 0


class FileNotes:
    """The two files. Used by one thread at a time; `hear` by any.

    Args:
        path: both files without their suffix.
    """

    def __init__(self, path: Path) -> None:
        """Touch nothing yet."""
        self._path = path.with_name(path.name + ".json")
        self._journal = path.with_name(path.name + ".heard")
        self._lock = FileLock(
            path.with_name(path.name + ".lock"), mode=private.FILE, thread_local=False
        )

    def hear(self, write: FileWrite) -> None:
        """Append what a hook told.

        Raises:
            OSError: it cannot be written; the look at the file will find the write again.
        """
        line = msgspec.json.encode(write) + b"\n"
        journal = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(journal, line)
        finally:
            os.close(journal)

    @contextmanager
    def opened(self) -> Iterator[SeenFiles | None]:
        """Read the notes, and write them if all ends well; None while another process does.

        Raises:
            OSError: they cannot be written.
        """
        private.directory(self._path.parent)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            yield None
            return
        try:
            noted = self._read()
            self._listen(noted)
            yield noted
            self._write(noted)
        finally:
            self._lock.release()

    def _read(self) -> SeenFiles:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=SeenFiles)
        except FileNotFoundError:
            return SeenFiles()
        except msgspec.MsgspecError as error:
            _log.warning("memorybus: %s: %s; all entries count as new", self._path, error)
            return SeenFiles()

    def _listen(self, noted: SeenFiles) -> None:
        """Apply what hooks told since; a line that is being written is left for the next time."""
        try:
            told = self._journal.read_bytes()[noted.heard :]
        except FileNotFoundError:
            return
        whole = told[: told.rfind(b"\n") + 1]
        for line in whole.splitlines():
            write = msgspec.json.decode(line, type=FileWrite)
            noted.entries[write.store] = after(noted.entries.get(write.store, ()), write)
        noted.heard += len(whole)

    def _write(self, noted: SeenFiles) -> None:
        begin_anew = noted.heard > _LONGEST
        if begin_anew:
            noted.heard = 0
        new = self._path.with_suffix(".new")
        private.write(new, msgspec.json.encode(noted))
        new.replace(self._path)
        if begin_anew:
            os.truncate(self._journal, 0)
