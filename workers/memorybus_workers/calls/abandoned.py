"""Calls that were given up and may still take effect (G4).

A thread cannot be stopped: what it has sent may take effect long after its call was abandoned.
If a repeated call would have a second effect, the event is not sent again before the thread has
returned, and meanwhile its lane does not move to another worker. The wait is bounded.
"""

from memorybus.clock import Clock

from memorybus_workers.calls.retry_at import RetryAt
from memorybus_workers.calls.thread_activity import PendingCall, ThreadActivity

MAX_TIME_LIMITS = 12
"""The wait for a call ends when it has taken this many times its time limit (G10)."""

POLL_SECONDS = 0.1
"""Seconds between two checks of whether a call has ended."""


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
        """Return when to look again whether an event may be sent, None if it may be sent now.

        Args:
            lane: the key of its lane's lease.
            event_id: the event.
        """
        if not self._is_pending((lane, event_id)):
            return None
        return RetryAt(self._clock.monotonic() + POLL_SECONDS)

    def has_pending(self, lane: str) -> bool:
        """Say whether an abandoned call may still take effect in a lane, given its lease's key."""
        return any(self._is_pending(key) for key in list(self._calls) if key[0] == lane)

    def _is_pending(self, key: tuple[str, str]) -> bool:
        known = self._calls.get(key)
        if known is None:
            return False
        activity, sending = known
        longest = MAX_TIME_LIMITS * (sending.limit or self._call_timeout)
        late = self._clock.monotonic() >= sending.since + longest
        if late or activity.pending_call() != sending:
            self._calls.pop(key, None)
            return False
        return True
