"""Sets the log fields of a thread: its lane, and its event (see `memorybus_workers.logs`)."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from memorybus.log.entry import LoggedEvent

from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.logs import LANE, UNDER_WAY

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Self = TypeVar("_Self")


class _Lane(Protocol):
    @property
    def partition(self) -> int: ...

    @property
    def epoch(self) -> int: ...


_AnyLane = TypeVar("_AnyLane", bound=_Lane)


def bind_lane(lane: _AnyLane) -> _AnyLane:
    """Let later log lines of this thread name a lane, and no event yet; return the lane."""
    LANE.set((lane.partition, lane.epoch))
    UNDER_WAY.set(None)
    return lane


def bind_partition(partition: int) -> None:
    """Let later log lines of this thread name a partition whose lane is not owned yet."""
    LANE.set((partition, None))
    UNDER_WAY.set(None)


def unbind_lane() -> None:
    """Let later log lines of this thread name no lane."""
    LANE.set(None)
    UNDER_WAY.set(None)


def bind_calls(activity: ThreadActivity, events: Sequence[LoggedEvent]) -> None:
    """Let later log lines of this thread name the event, of these, whose call is under way."""

    def find_event() -> LoggedEvent | None:
        now = activity.current_call
        return next((event for event in events if event.envelope.id == now), None)

    UNDER_WAY.set(find_event)


def bind_event(
    step: Callable[Concatenate[_Self, _AnyLane, LoggedEvent, _P], _R],
) -> Callable[Concatenate[_Self, _AnyLane, LoggedEvent, _P], _R]:
    """Let the log lines of a method name the event that is its second argument."""

    @wraps(step)
    def with_event(
        self: _Self, lane: _AnyLane, event: LoggedEvent, /, *args: _P.args, **named: _P.kwargs
    ) -> _R:
        before = UNDER_WAY.set(lambda: event)
        try:
            return step(self, lane, event, *args, **named)
        finally:
            UNDER_WAY.reset(before)

    return with_event
