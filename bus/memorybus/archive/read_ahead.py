"""Reads the next group of an archive on its own thread while the rows before it are applied."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread

from memorybus.archive.format.reader import Group

GroupKey = tuple[str, int, tuple[str, ...]]
"""A group: its segment's SHA-256, its number there, and the columns that are read."""

IDLE_SECONDS = 1.0  # seconds without anything to read after which the thread ends


class PendingGroup:
    """A group that is being read. Unpacking and hashing release the GIL and use another core."""

    def __init__(self, key: GroupKey, read: Callable[[], Group]) -> None:
        self.key = key  # names the group
        self._read = read
        self._group: Group | None = None
        self._error: Exception | None = None
        self._done = Event()

    def run(self) -> None:
        """Read the group; an error is kept and raised by `result`."""
        try:
            self._group = self._read()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> None:
        self._done.wait()

    def result(self) -> Group:
        """Wait for the group and return it."""
        self._done.wait()
        if self._group is None:
            raise self._error or RuntimeError(f"group {self.key} was not read")
        return self._group


class ReadAheadThread:
    """The thread that reads ahead. It ends after `IDLE_SECONDS` without work.

    Starting a thread for each group would cost half as much time as reading the group.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[PendingGroup] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()

    def begin(self, group: PendingGroup) -> PendingGroup:
        """Queue a group; it is read after those that were queued before. Return it."""
        with self._lock:
            self._queue.put(group)
            if self._thread is None or not self._thread.is_alive():  # a forked child lacks it
                self._thread = Thread(target=self._run, name="memorybus-ahead", daemon=True)
                self._thread.start()
        return group

    def _run(self) -> None:
        while (group := self._next()) is not None:
            group.run()
            del group  # else the group would stay in memory until the next one

    def _next(self) -> PendingGroup | None:
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._lock:
                if not self._queue.empty():
                    return self._queue.get()
                self._thread = None
                return None
