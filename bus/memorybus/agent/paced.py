"""Publishes many events, no faster than the log takes them."""

from collections.abc import Callable

from memorybus.agent.client import MemoryBus
from memorybus.clock import Clock
from memorybus.errors import LogUnavailable, SpoolFull

MAX_UNSENT = 500
"""The most unsent events of an import: agents need the rest of the spool as a buffer (G10)."""

_EVENTS_PER_LOOK = 50
_STEP_SECONDS = 0.5
_MAX_IDLE_STEPS = 120
"""After so many steps without a sent event an import gives up; its next run continues."""


class LogStalled(LogUnavailable):
    """The log took nothing for a minute; the next run publishes the rest."""


class PacedPublisher:
    """Publishes through a bus, and waits whenever too many events are unsent.

    Args:
        on_wait: called with the number of unsent events while it waits for the log.
    """

    def __init__(self, bus: MemoryBus, clock: Clock, on_wait: Callable[[int], object]) -> None:
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
        if self._published % _EVENTS_PER_LOOK == 0:
            self._drain(MAX_UNSENT)
        self._published += 1
        for _ in range(_MAX_IDLE_STEPS):
            try:
                publish()
            except SpoolFull:
                self._drain(1)
                self._clock.sleep(_STEP_SECONDS)
            else:
                return
        publish()

    def finish(self) -> None:
        """Wait until the log has everything. `LogStalled`: it took nothing for a minute."""
        self._drain(1)

    def _drain(self, room: int) -> None:
        idle, before = 0, self._bus.unsent
        while (unsent := self._bus.unsent) >= room:
            idle = idle + 1 if unsent >= before else 0
            before = unsent
            if idle > _MAX_IDLE_STEPS:
                raise LogStalled(
                    f"the log took nothing for {_MAX_IDLE_STEPS * _STEP_SECONDS:.0f} s: "
                    f"{self._bus.problem}; {unsent} events are spooled and go out by themselves, "
                    f"run this again for the rest"
                )
            self._on_wait(unsent)
            self._bus.flush("logged", _STEP_SECONDS)
