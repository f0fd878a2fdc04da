"""What is read next of an archive, on a thread of its own while the rows before it are applied."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread

from memorybus.archive.format.reader import Group

Key = tuple[str, int, tuple[str, ...]]
"""A group: its segment's SHA-256, its number there, and the columns that are read."""

IDLE = 1.0
"""Seconds without anything to read after which the thread ends."""


class PendingGroup:
    """One group on its way. Unpacking and hashing hold no lock: they take another core.

    Attributes:
        key: which group.
    """

    def __init__(self, key: Key, read: Callable[[], Group]) -> None:
        """Take what to do; nobody else uses the file of `read` until that is done."""
        self.key = key
        self._read = read
        self._group: Group | None = None
        self._error: Exception | None = None
        self._done = Event()

    def run(self) -> None:
        """Read; what goes wrong is told to who asks for the result."""
        try:
            self._group = self._read()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> None:
        """Wait until the file is free again."""
        self._done.wait()

    def result(self) -> Group:
        """Return the group.

        Raises:
            ArchiveDamaged: it cannot be read.
        """
        self._done.wait()
        if self._group is None:
            raise self._error or RuntimeError(f"group {self.key} was not read")
        return self._group


class ReadAheadThread:
    """The thread that reads ahead: there while there is something to read, and a moment longer.

    Beginning a thread for each group would cost the reader as much as half of reading it.
    """

    def __init__(self) -> None:
        """Begin nothing yet."""
        self._things: SimpleQueue[PendingGroup] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()

    def begin(self, one: PendingGroup) -> PendingGroup:
        """Read something as soon as what was begun before is read; return it."""
        with self._lock:
            self._things.put(one)
            if self._thread is None or not self._thread.is_alive():  # in a forked child it is not
                self._thread = Thread(target=self._run, name="memorybus-ahead", daemon=True)
                self._thread.start()
        return one

    def _run(self) -> None:
        while (one := self._next()) is not None:
            one.run()
            del one  # else the group would stay in memory until the next one

    def _next(self) -> PendingGroup | None:
        try:
            return self._things.get(timeout=IDLE)
        except Empty:
            with self._lock:
                if not self._things.empty():
                    return self._things.get()
                self._thread = None
                return None
