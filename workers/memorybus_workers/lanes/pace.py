"""Limits how fast an instance reads the history: a bucket that fills with time (``rate``).

Each worker has its own bucket, and owns a share of the instance's unfinished lanes. Its bucket
fills with the same share of the rate, so that all workers together keep to the rate, also when a
lane moves to another worker.
"""

from collections.abc import Callable, Iterable, Sequence

from memorybus.clock import Clock
from memorybus.events import Omitted
from memorybus.log.entry import LoggedEvent
from memorybus.query.ranges import Plan
from memorybus.registry.lanes import LaneKeys

BURST_SECONDS = 1.0  # the bucket holds at most the events of so many seconds
COUNT_SECONDS = 0.5  # seconds between two counts of the instance's unfinished lanes
_INFINITE = float("inf")
_MIN_READ_EVENTS = 64
"""The fewest events that are read: those that the plan leaves out are free, and may be many."""


class Pace:
    """Lets a limited number of events of an instance pass per second. Belongs to one thread."""

    def __init__(
        self, clock: Clock, rate: float = 0.0, unfinished: Callable[[], int] = lambda: 0
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._here = 0.0
        self._unfinished = unfinished
        self._all = 0
        self._look_at = -_INFINITE
        self._left = 1.0
        self._at = clock.monotonic()

    def take_share(self, ended: Iterable[bool]) -> None:
        """Take this worker's share of the rate; `ended` says which of its lanes have all events.

        A lane that has all its events stays finished. So an old count of unfinished lanes may be
        too high, but never too low, and all shares together never exceed the rate.
        """
        if not self._rate:
            return
        self._fill()
        if self._at >= self._look_at:
            self._all = self._unfinished()
            self._look_at = self._at + COUNT_SECONDS
        mine = sum(not all_there for all_there in ended)
        self._here = self._rate * mine / max(mine, self._all, 1)

    def batch_size(self, most: int) -> int:
        """Return how many events to read now, at most `most`; 0 while it is too early."""
        if not self._rate:
            return most
        self._fill()
        return 0 if self._left < 1 else min(most, max(_MIN_READ_EVENTS, int(self._left)))

    def take(self, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        if not self._rate:
            return events
        for index, event in enumerate(events):
            if type(event.envelope.event) is not Omitted:
                if self._left < 1:
                    return events[:index]
                self._left -= 1
        return events

    def seconds_to_wait(self) -> float:
        if not self._rate:
            return 0.0
        self._fill()
        missing = 1 - self._left
        if missing <= 0:
            return 0.0
        return missing / self._here if self._here else _INFINITE

    def _fill(self) -> None:
        now = self._clock.monotonic()
        most = max(1.0, self._here * BURST_SECONDS)
        self._left = min(most, self._left + (now - self._at) * self._here)
        self._at = now


def count_unfinished(lanes: LaneKeys, name: str, plan: Plan) -> int:
    states = enumerate(lanes.states(name))
    return sum(not plan.ended(partition, lane.n) for partition, lane in states)
