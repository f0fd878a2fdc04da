"""A word from one thread to another that an interrupt cannot break."""

from contextlib import suppress
from queue import Empty, SimpleQueue


class Wake:
    """Wakes one thread; several words before it looks are one.

    `threading.Event` is Python around a lock: a KeyboardInterrupt inside `set` leaves the lock
    held, and who sets it next, or waits, stands still for ever: an agent that is told to end would
    not (G9). Each method of a `SimpleQueue` is one step.
    """

    def __init__(self) -> None:
        """Nobody was woken yet."""
        self._words: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake who waits, or who waits next."""
        if self._words.empty():
            self._words.put(None)

    def wait(self, timeout: float) -> None:
        """Wait for a word, at most so many seconds, and take it."""
        with suppress(Empty):
            self._words.get(timeout=timeout)
