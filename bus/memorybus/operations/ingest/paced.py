"""Publishes many events, no faster than the log takes them."""

from collections.abc import Callable

from memorybus.agent.client import MemoryBus
from memorybus.clock import Clock
from memorybus.errors import LogUnavailable, SpoolFull

MOST_UNSENT = 500
"""The most unsent events of an import: agents need the rest of the spool as a buffer (G10)."""

_LOOK_EVERY = 50
_STEP = 0.5
_PATIENCE = 120
"""After so many steps without a sent event an import gives up; its next run continues."""


class LogStalled(LogUnavailable):
    """The log took nothing for a minute; the next run publishes the rest."""


class PacedPublisher:
    """Publishes through a bus, and waits whenever too many events are unsent.

    Args:
        bus: the bus to publish to.
        clock: time.
        on_wait: called with the number of unsent events while we wait for the log.
    """

    def __init__(self, bus: MemoryBus, clock: Clock, on_wait: Callable[[int], object]) -> None:
        """Publish nothing yet."""
        self._bus = bus
        self._clock = clock
        self._on_wait = on_wait
        self._published = 0

    def publish(self, publish: Callable[[], object]) -> None:
        """Call `publish` as soon as the spool has room; sent rows stay there for some seconds.

        Raises:
            EventError: the event is refused.
            SpoolFull: the spool took nothing for a minute.
            LogStalled: the log took nothing for a minute.
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
            LogStalled: the log took nothing for a minute; what is published stays spooled.
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
