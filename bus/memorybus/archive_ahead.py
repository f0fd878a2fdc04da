"""What is read next of an archive, on a thread of its own while the rows before it are applied."""

from collections.abc import Callable
from threading import Thread

from memorybus.archive_segment import Group

Key = tuple[str, int, tuple[str, ...]]
"""A group: its segment's SHA-256, its number there, and the columns that are read."""


class Ahead:
    """One thing on its way. Unpacking and hashing hold no lock: they take another core.

    Attributes:
        key: which group; None for what only has to be done.
    """

    def __init__(self, key: Key | None, read: Callable[[], Group | None]) -> None:
        """Begin; `read` is called on the other thread, and nobody else uses its file meanwhile."""
        self.key = key
        self._read = read
        self._found: Group | None = None
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, name="memorybus-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._read()
        except Exception as error:
            self._error = error

    def wait(self) -> None:
        """Wait until the file is free again."""
        self._thread.join()

    def result(self) -> Group:
        """Return the group.

        Raises:
            ArchiveDamaged: it cannot be read.
        """
        self._thread.join()
        if self._found is None:
            raise self._error or RuntimeError(f"group {self.key} was not read")
        return self._found
