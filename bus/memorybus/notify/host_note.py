"""Keeps this host's own note of notices in a small file, under a lock that ends with its process.

A host sends a notice of its own only if Redis is away, because it then cannot know which notices
other hosts have sent.
"""

import os
from pathlib import Path

from filelock import FileLock, Timeout

from memorybus import private


class HostNote:
    """The note of one host. Belongs to one thread.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        """Remember the path; the lock is not taken yet."""
        self._path = path
        self._lock = FileLock(path.with_suffix(".lock"), mode=private.FILE)

    def read(self) -> bytes | None:
        """Take the lock and return the note.

        Returns:
            b"" if there is no note yet; None if another process of this host holds the lock.

        Raises:
            OSError: the directory cannot be used.
        """
        if not self._lock.is_locked and not self._acquire():
            return None
        return self._path.read_bytes() if self._path.exists() else b""

    def write(self, note: bytes) -> bool:
        """Replace the note in one step; return True.

        Raises:
            OSError: the file cannot be written.
        """
        new = self._path.with_suffix(".new")
        private.write(new, note)
        os.replace(new, self._path)
        return True

    def _acquire(self) -> bool:
        private.directory(self._path.parent)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def close(self) -> None:
        """Release the lock, so that another process can take over."""
        self._lock.release(force=True)
