"""Notes which call each thread makes, and which calls were given up and may take effect (G4).

A thread cannot be stopped: what it has sent may take effect long after its call was abandoned. If a
repeated call would have a second effect, the event is not sent again before the thread has
returned, and meanwhile its lane does not move to another worker. The wait is bounded.
"""

import threading
from collections.abc import Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.errors import LeaseLost

from memorybus_workers.calls.retry import RetryAt


class PendingCall(msgspec.Struct, frozen=True):
    """A call that must not be repeated while it is under way."""

    lane: str  # the key of its lane's lease
    event_id: str  # the event that the call applies
    since: float  # when it began (monotonic)
    limit: float = 0.0  # seconds that it may take; 0 if that is `call_timeout`
    other_event_ids: tuple[str, ...] = ()  # further events of the same call


class ThreadActivity:
    """The call that one thread is busy with. Only that thread writes; any thread may read."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._name = ""
        self._lane = ""
        self.in_hook = False  # whether the call is a hook for an event
        # whether the thread was given up, so that it may not begin another call
        self.abandoned = False
        self._since = 0.0
        self._limit = 0.0
        self._others: tuple[str, ...] = ()
        self._turn = threading.Lock()

    def begin(self, event_id: str, lane: str = "", limit: float = 0.0) -> float:
        """Note that a hook is about to be called for an event; return the time (monotonic)."""
        self._since = now = self._monotonic()
        self._limit = limit
        self._others = ()
        self.in_hook = True
        self._lane = lane
        self._name = event_id
        if self.abandoned:  # the thread that abandons us sets this before it reads the call
            self._name = ""
            raise LeaseLost(f"the thread was given up before the call for event {event_id}")
        return now

    def begin_several(self, event_ids: Sequence[str], lane: str = "") -> None:
        """Note that a hook is about to be called for several events; see `begin`."""
        self.begin(event_ids[0], lane)
        self._others = tuple(event_ids[1:])

    def begin_next(self, event_id: str, lane: str = "", limit: float = 0.0) -> None:
        """Begin a further call for the event whose last one has just returned; see `begin`."""
        with self._turn:
            if self.abandoned:
                raise LeaseLost(f"the call for event {event_id} was abandoned")
            self.begin(event_id, lane, limit)

    def abandon(self, timeout: float) -> bool:
        """Give the thread up if its call hangs (see `hanging_call`); return whether it does."""
        with self._turn:
            self.abandoned = self.abandoned or bool(self.hanging_call(timeout))
            return self.abandoned

    def enter(self, what: str) -> None:
        """Note that something else is about to be called: opening, a commit, the shutdown."""
        self._since = self._monotonic()
        self._limit = 0.0
        self.in_hook = False
        self._name = what

    def end(self) -> None:
        self._name = ""

    @property
    def current_call(self) -> str:
        return self._name

    def end_interrupted(self) -> bool:
        """Note that the call ended with a failure; return whether a hook raised it."""
        in_hook = self._name != "" and self.in_hook
        self._name = ""
        return in_hook

    def pending_call(self) -> PendingCall | None:
        """Return the call that is under way, if repeating it would have a second effect."""
        name, lane = self._name, self._lane
        if not (name and lane and self.in_hook):
            return None
        return PendingCall(lane, name, self._since, self._limit, self._others)

    def hanging_call(self, timeout: float) -> str:
        name = self._name
        late = bool(name) and self._monotonic() - self._since > (self._limit or timeout)
        return name if late else ""


MAX_TIME_LIMITS = 12
"""The wait for a call ends when it has taken this many times its time limit (G10)."""

POLL_SECONDS = 0.1  # seconds between two checks of whether a call has ended


class AbandonedCalls:
    """The abandoned calls of one worker process. Shared by its threads."""

    def __init__(self, clock: Clock, call_timeout: float) -> None:
        self._clock = clock
        self._call_timeout = call_timeout
        self._calls: dict[tuple[str, str], tuple[ThreadActivity, PendingCall]] = {}

    def note(self, activity: ThreadActivity) -> None:
        """Note the call that a given-up thread is sending; a second time changes nothing."""
        sending = activity.pending_call()
        if sending is not None:
            for event_id in (sending.event_id, *sending.other_event_ids):
                self._calls[sending.lane, event_id] = (activity, sending)

    def retry_at(self, lane: str, event_id: str) -> RetryAt | None:
        """Return when to look again whether an event may be sent, None if it may be sent now."""
        if not self._is_pending((lane, event_id)):
            return None
        return RetryAt(self._clock.monotonic() + POLL_SECONDS)

    def has_pending(self, lane: str) -> bool:
        """Whether an abandoned call may still take effect in a lane, given its lease's key."""
        return any(self._is_pending(key) for key in list(self._calls) if key[0] == lane)

    def _is_pending(self, key: tuple[str, str]) -> bool:
        call = self._calls.get(key)
        if call is None:
            return False
        activity, sending = call
        longest = MAX_TIME_LIMITS * (sending.limit or self._call_timeout)
        late = self._clock.monotonic() >= sending.since + longest
        if late or activity.pending_call() != sending:
            self._calls.pop(key, None)
            return False
        return True
