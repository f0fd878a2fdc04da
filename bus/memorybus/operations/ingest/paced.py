"""Publishing many events, no faster than the log takes them."""

from collections.abc import Callable
from typing import Protocol

from memorybus.agent.client import MemoryBus
from memorybus.clock import Clock
from memorybus.errors import LogUnavailable, SpoolFull

MOST_UNSENT = 500
"""Events that wait in the spool at most: it is the agents' buffer, not ours (G10)."""

_LOOK_EVERY = 50
_STEP = 0.5
_PATIENCE = 120
"""Steps without any event sent, after which an import gives up. Its next run goes on there."""


class LogStalled(LogUnavailable):
    """The log took nothing for a minute; the rest is published by the next run."""


class OnWait(Protocol):
    """Called while an import waits for the log, with the number of unsent events."""

    def __call__(self, unsent: int) -> None:
        """Take the number of unsent events."""


class PacedPublisher:
    """Publishes through a bus and waits whenever too much is unsent.

    Args:
        bus: where to.
        clock: time.
        on_wait: called while the log is waited for.
    """

    def __init__(self, bus: MemoryBus, clock: Clock, on_wait: OnWait) -> None:
        """Remember the bus."""
        self._bus = bus
        self._clock = clock
        self._on_wait = on_wait
        self._published = 0

    def publish(self, publish: Callable[[], object]) -> None:
        """Publish as soon as the spool has room; it keeps sent rows for some seconds.

        Raises:
            EventError: the event is refused.
            SpoolFull, LogStalled: the spool, or the log, took nothing for a minute.
        """
        if self._published % _LOOK_EVERY == 0:
            self._drain(MOST_UNSENT)
        self._published += 1
        for _ in range(_PATIENCE):
            try:
                publish()
            except SpoolFull:
                self._drain(1)
                self._clock.sleep(_STEP)
            else:
                return
        publish()

    def finish(self) -> None:
        """Wait until the log has everything.

        Raises:
            LogStalled: it took nothing for a minute; what is published stays spooled.
        """
        self._drain(1)

    def _drain(self, room: int) -> None:
        """Wait until fewer than `room` events are unsent."""
        idle, before = 0, self._bus.unsent
        while (unsent := self._bus.unsent) >= room:
            idle = idle + 1 if unsent >= before else 0
            before = unsent
            if idle > _PATIENCE:
                raise LogStalled(
                    f"the log took nothing for {_PATIENCE * _STEP:.0f} s: {self._bus.problem}; "
                    f"{unsent} events are spooled and go out by themselves, run this again for "
                    f"the rest"
                )
            self._on_wait(unsent)
            self._bus.flush("logged", _STEP)
