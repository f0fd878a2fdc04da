"""The disk reserve of a spool keeps room for sending its rows when the disk is full (G10)."""

import os
import sys
from pathlib import Path

from memorybus import private

RESERVE_SUFFIX = ".reserve"
"""Suffix of the file."""


class DiskReserve:
    """A file that is deleted when the disk is full, so that the spool can still be sent.

    The setting ``spool_reserve`` says how large it is.
    """

    def __init__(self, spool: Path, size: int) -> None:
        """Name the file, which lies next to the spool; `restore` makes it."""
        self._path = spool.with_suffix(RESERVE_SUFFIX)
        self._size = size

    def restore(self) -> bool:
        """Make the file if it is missing and there is room; return whether it exists."""
        if not self._path.exists():
            try:
                _allocate(self._path, self._size)
            except OSError:
                self.give_up()
                return False
        return True

    def give_up(self) -> None:
        """Delete the file."""
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
