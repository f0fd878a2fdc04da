"""Keeps ids of events in a temporary file, so that memory use does not grow with their number."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator

from memorybus.errors import ArchiveUnavailable
from memorybus.history.scratch_index import ScratchIndex

_CACHE_KIB = 65_536
"""KiB of the file that SQLite keeps in memory (G10)."""


class KnownIds(ScratchIndex):
    """A set of ids; see `ScratchIndex`.

    Every method raises `ArchiveUnavailable` if the disk is full.
    """

    def __init__(self) -> None:
        super().__init__(
            f"pragma cache_size = -{_CACHE_KIB}; "
            "create table ids(id blob primary key) without rowid"
        )

    def add(self, ids: Iterable[str]) -> None:
        """Remember some ids (32 hex digits each)."""
        rows = [(bytes.fromhex(one),) for one in ids]
        with _translated_errors():
            self._db.execute("begin")
            self._db.executemany("insert or ignore into ids values (?)", rows)
            self._db.execute("commit")

    def is_new(self, event_id: str) -> bool:
        """Say whether an id was not known yet, and remember it."""
        row = (bytes.fromhex(event_id),)
        with _translated_errors():
            return self._db.execute("insert or ignore into ids values (?)", row).rowcount > 0


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ArchiveUnavailable(
            f"the temporary file of known ids: {error}; make room where temporary files lie, or "
            f"set SQLITE_TMPDIR to another directory"
        ) from error
