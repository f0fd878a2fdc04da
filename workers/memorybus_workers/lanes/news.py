"""Announces news of the log: which partitions have new entries."""

import threading
from collections.abc import Collection


class Inbox:
    """The news that one runner has not taken yet. Any thread may add some, and one takes them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._partitions: set[int] = set()
        self._rung = False

    def put(self, partitions: Collection[int] = ()) -> None:
        """Add partitions that have news, and wake the runner, even if there are none."""
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
    """Passes the tail's news to every runner of a worker. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inboxes: tuple[Inbox, ...] = ()

    def subscribe(self) -> Inbox:
        """Return a new inbox, which gets all news from now on."""
        inbox = Inbox()
        with self._lock:
            self._inboxes = (*self._inboxes, inbox)
        return inbox

    def unsubscribe(self, inbox: Inbox) -> None:
        """Put nothing into an inbox any more; a second call changes nothing."""
        with self._lock:
            self._inboxes = tuple(one for one in self._inboxes if one is not inbox)

    def announce(self, partitions: Collection[int]) -> None:
        """Wake every runner: these partitions have new entries."""
        for inbox in self._inboxes:
            inbox.put(partitions)
