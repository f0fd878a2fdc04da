"""Remembers what this host has told by itself: a small file, and a lock that ends with its process.

Each host tells by itself only that Redis is away, because it then cannot know what other hosts have
told.
"""

import os
from pathlib import Path

from filelock import FileLock, Timeout

from memorybus import private


class HostNote:
    """Belongs to one thread.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        """Take nothing yet."""
        self._path = path
        self._lock = FileLock(path.with_suffix(".lock"), mode=private.FILE)

    def read(self) -> bytes | None:
        """Return what was told, b"" if nothing was; None if another process of this host tells.

        Raises:
            OSError: the directory cannot be used.
        """
        if not self._lock.is_locked and not self._acquire():
            return None
        return self._path.read_bytes() if self._path.exists() else b""

    def write(self, note: bytes) -> bool:
        """Keep what was told, in one step.

        Raises:
            OSError: it cannot be written.
        """
        made = self._path.with_suffix(".new")
        private.write(made, note)
        os.replace(made, self._path)
        return True

    def _acquire(self) -> bool:
        private.directory(self._path.parent)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def close(self) -> None:
        """Let another process tell."""
        self._lock.release(force=True)
