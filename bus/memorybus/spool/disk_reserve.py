"""The ballast of a spool: room to drain in when the disk is full (G10)."""

from pathlib import Path

from memorybus import private


class Ballast:
    """A file of zeros that is given up when the disk is full, so that a spool can still drain."""

    def __init__(self, path: Path, size: int) -> None:
        """Name the file; `restore` makes it."""
        self._path = path
        self._size = size

    def restore(self) -> bool:
        """Make the file again if there is room; return whether it is there."""
        if not self._path.exists():
            try:
                private.write(self._path, b"\0" * self._size)
            except OSError:
                self.give_up()
                return False
        return True

    def give_up(self) -> None:
        """Delete the file."""
        self._path.unlink(missing_ok=True)
