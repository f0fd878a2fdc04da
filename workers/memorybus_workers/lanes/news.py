"""News of the log: which partitions have new entries.

The tail announces them, and each runner finds them in an inbox of its own.
"""

import threading
from collections.abc import Collection


class Inbox:
    """What one runner has not taken yet. Any thread may put something in; one waits and takes."""

    def __init__(self) -> None:
        """Start empty."""
        self._changed = threading.Condition()
        self._partitions: set[int] = set()
        self._rung = False

    def put(self, partitions: Collection[int] = ()) -> None:
        """Add partitions that have news, and wake the runner, also if there are none."""
        with self._changed:
            self._partitions.update(partitions)
            self._rung = True
            self._changed.notify()

    def take(self) -> set[int]:
        """Empty the inbox; return the partitions that were in it."""
        with self._changed:
            taken, self._partitions = self._partitions, set()
            self._rung = False
        return taken

    def wait(self, seconds: float) -> None:
        """Wait until something is put in; return at once if that happened since the last `take`."""
        with self._changed:
            if not self._rung:
                self._changed.wait(seconds)


class News:
    """Hands what the tail sees to every runner of a worker. Any thread may use it."""

    def __init__(self) -> None:
        """Have no inbox yet."""
        self._lock = threading.Lock()
        self._inboxes: tuple[Inbox, ...] = ()

    def subscribe(self) -> Inbox:
        """Return a new inbox, which gets all that is announced from now on."""
        inbox = Inbox()
        with self._lock:
            self._inboxes = (*self._inboxes, inbox)
        return inbox

    def unsubscribe(self, inbox: Inbox) -> None:
        """Fill an inbox no more; a second time changes nothing."""
        with self._lock:
            self._inboxes = tuple(one for one in self._inboxes if one is not inbox)

    def announce(self, partitions: Collection[int]) -> None:
        """Wake every runner: these partitions have new entries."""
        for inbox in self._inboxes:
            inbox.put(partitions)
