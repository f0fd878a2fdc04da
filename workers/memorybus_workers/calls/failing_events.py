"""Remembers which events failed, how often, and when each may be tried again."""

import random
from collections.abc import Iterable

import msgspec
from memorybus.clock import Clock

from memorybus_workers.calls.retry import RetryAt, retry_delay


class FailingEvent(msgspec.Struct):
    """An event that failed."""

    served: int  # how many calls of the provider had succeeded before it failed first
    tries: int = 0  # how many failures count against it
    first_at: int = 0  # when it failed first, milliseconds since the Unix epoch
    last_at: int = 0  # when it failed last
    until: float = 0.0  # when it may be tried again (monotonic)
    hung: bool = False  # whether a call for it was abandoned
    pause_pending: bool = False  # whether its pause begins only when its lane next comes to it


class FailingEvents:
    """The failing events of one provider instance, shared by its threads.

    The first failure of an event counts. A later one counts only if the provider has served another
    event since, and does not seem down. Otherwise the backend may be down, and nothing is parked
    for that.
    """

    def __init__(self, clock: Clock, rng: random.Random, attempts: int) -> None:
        self.served = 0  # how many calls succeeded
        self.rng = rng  # makes the jitter of retries
        self.attempts = attempts  # how often an event may fail
        self._clock = clock
        self._events: dict[str, FailingEvent] = {}

    def __bool__(self) -> bool:
        return bool(self._events)

    def note_failure(
        self, event_id: str, *, backend_up: bool, served: int | None = None
    ) -> FailingEvent:
        begun = self.served if served is None else served
        event = self._events.setdefault(event_id, FailingEvent(begun))
        if not event.tries:
            event.served = begun
        if not event.tries or (backend_up and self.served > event.served):
            event.tries += 1
        event.last_at = self._clock.now_ms()
        event.first_at = event.first_at or event.last_at
        return event

    def note_doubt(self, event_id: str) -> None:
        """Note that an event was sent without an answer, which does not count against it."""
        self._events.setdefault(event_id, FailingEvent(self.served))

    def note_hang(self, event_id: str, *, backend_up: bool, served: int | None = None) -> None:
        """Note that a call for an event was abandoned: it is tried again later, after others."""
        event = self.note_failure(event_id, backend_up=backend_up, served=served)
        event.hung = event.pause_pending = True

    def retry_at(self, event_id: str) -> RetryAt | None:
        event = self.get(event_id)
        if event is None:
            return None
        now = self._clock.monotonic()
        if event.pause_pending:
            event.pause_pending = False
            event.until = now + retry_delay(event.tries, self.rng)
        return RetryAt(event.until) if event.until > now else None

    def retry_now(self) -> None:
        """Let every event be tried again at once; the failures still count."""
        for event in self._events.values():
            event.until, event.pause_pending = 0.0, False

    def settle(self, event_id: str) -> None:
        if self._events:
            self._events.pop(event_id, None)

    def forget(self, event_ids: Iterable[str]) -> None:
        for event_id in event_ids:
            self.settle(event_id)

    def get(self, event_id: str) -> FailingEvent | None:
        return self._events.get(event_id) if self._events else None

    def has_any(self, event_ids: Iterable[str]) -> bool:
        """Return whether one of these failed before, and is tried alone until it is settled."""
        return bool(self._events) and any(event_id in self._events for event_id in event_ids)

    def has_hung_too_often(self, event_id: str) -> bool:
        event = self.get(event_id)
        return event is not None and event.hung and event.tries >= self.attempts

    def copy(self) -> "FailingEvents":
        """Return a copy for the next instance, so that it knows what this one knew."""
        heir = FailingEvents(self._clock, self.rng, self.attempts)
        heir.served = self.served
        heir._events = {
            name: msgspec.structs.replace(event) for name, event in self._events.items()
        }
        return heir
