"""Which call each thread is busy with and since when, and which events failed before."""

import random
import threading
from collections.abc import Iterable, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.errors import LeaseLost

from memorybus_workers.calls.retry import retry_delay


class PendingCall(msgspec.Struct, frozen=True):
    """A call that must not be repeated while it is under way.

    Attributes:
        lane: the key of its lane's lease.
        event_id: the event that it is for.
        since: when it began (monotonic).
        limit: seconds that it may take; 0 if that is `call_timeout`.
        other_event_ids: further events of the same call.
    """

    lane: str
    event_id: str
    since: float
    limit: float = 0.0
    other_event_ids: tuple[str, ...] = ()


class Slot:
    """The call that one thread is busy with. One writer, any reader.

    Attributes:
        in_hook: whether the call is a hook for an event.
        abandoned: whether the thread was given up: it begins no call any more.
    """

    def __init__(self, clock: Clock) -> None:
        """Be idle."""
        self._monotonic = clock.monotonic
        self._name = ""
        self._lane = ""
        self.in_hook = False
        self.abandoned = False
        self._since = 0.0
        self._limit = 0.0
        self._others: tuple[str, ...] = ()
        self._turn = threading.Lock()

    def begin(self, event_id: str, lane: str = "", limit: float = 0.0) -> float:
        """Note that a hook is about to be called for an event; return the time (monotonic).

        Args:
            event_id: which.
            lane: the key of its lane's lease, if a second call would repeat the effect of this one.
            limit: seconds that it may take, if not as long as any other call.

        Raises:
            LeaseLost: the thread was given up.
        """
        self._since = now = self._monotonic()
        self._limit = limit
        self._others = ()
        self.in_hook = True
        self._lane = lane
        self._name = event_id
        if self.abandoned:  # set before the name is read by who gives up the thread
            self._name = ""
            raise LeaseLost(f"the thread was given up before the call for event {event_id}")
        return now

    def begin_several(self, event_ids: Sequence[str], lane: str = "") -> None:
        """Note that a hook is about to be called for several events; see `begin`.

        Raises:
            LeaseLost: the thread was given up.
        """
        self.begin(event_ids[0], lane)
        self._others = tuple(event_ids[1:])

    def begin_next(self, event_id: str, lane: str = "", limit: float = 0.0) -> None:
        """Begin a further call for the event whose last one has just returned; see `begin`.

        Raises:
            LeaseLost: that one was abandoned before it returned: the event is another thread's.
        """
        with self._turn:
            if self.abandoned:
                raise LeaseLost(f"the call for event {event_id} was abandoned")
            self.begin(event_id, lane, limit)

    def abandon(self, timeout: float) -> bool:
        """Give the thread up if its call hangs (see `hanging_call`); return whether so."""
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
        """Note that the call has returned."""
        self._name = ""

    @property
    def current_call(self) -> str:
        """The call that it is busy with, or ""."""
        return self._name

    def end_interrupted(self) -> bool:
        """Note that the call ended with a failure; return whether that came out of a hook."""
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
        """Return the call that has taken longer than its limit, else `timeout` seconds, or ""."""
        name = self._name
        late = bool(name) and self._monotonic() - self._since > (self._limit or timeout)
        return name if late else ""


class Trouble(msgspec.Struct):
    """An event that failed.

    Attributes:
        served: calls of the provider that had succeeded before it failed first.
        tries: how many failures count against it.
        first_at: when it failed first, milliseconds since the Unix epoch.
        last_at: when it failed last.
        until: when it may be tried again (monotonic).
        hung: whether a call for it was abandoned.
        pause_pending: whether its pause begins only when its lane next comes to it.
    """

    served: int
    tries: int = 0
    first_at: int = 0
    last_at: int = 0
    until: float = 0.0
    hung: bool = False
    pause_pending: bool = False


class Troubles:
    """The failing events of one provider instance, shared by its threads.

    The first failure of an event counts. A later one counts only if the provider has served another
    event since, and does not seem down: otherwise a bad event looks like a backend that is down,
    and nothing is parked for that.

    Attributes:
        served: calls that succeeded.
        attempts: how often an event may fail.
        rng: jitter of retries.
    """

    def __init__(self, clock: Clock, rng: random.Random, attempts: int) -> None:
        """Know of none."""
        self.served = 0
        self.rng = rng
        self.attempts = attempts
        self._clock = clock
        self._events: dict[str, Trouble] = {}

    def __bool__(self) -> bool:
        """Say whether any event is in trouble."""
        return bool(self._events)

    def note_failure(
        self, event_id: str, *, backend_up: bool, served: int | None = None
    ) -> Trouble:
        """Note a failure of an event; return what is known of it now.

        Args:
            event_id: which.
            backend_up: whether the provider seemed to work before this.
            served: what `served` was when the call began, if others were under way since.
        """
        begun = self.served if served is None else served
        trouble = self._events.setdefault(event_id, Trouble(begun))
        if not trouble.tries:
            trouble.served = begun
        if not trouble.tries or (backend_up and self.served > trouble.served):
            trouble.tries += 1
        trouble.last_at = self._clock.now_ms()
        trouble.first_at = trouble.first_at or trouble.last_at
        return trouble

    def note_doubt(self, event_id: str) -> None:
        """Note that an event was sent and not answered, which does not count against it."""
        self._events.setdefault(event_id, Trouble(self.served))

    def note_hang(self, event_id: str, *, backend_up: bool, served: int | None = None) -> None:
        """Note that a call for an event was abandoned: it is tried again later, others first."""
        trouble = self.note_failure(event_id, backend_up=backend_up, served=served)
        trouble.hung = trouble.pause_pending = True

    def retry_at(self, event_id: str) -> float | None:
        """Return when an event may be tried again (monotonic), None if it may be tried now.

        The pause of an event that hung begins when its lane next comes to it, so that others go
        first.
        """
        trouble = self.get(event_id)
        if trouble is None:
            return None
        now = self._clock.monotonic()
        if trouble.pause_pending:
            trouble.pause_pending = False
            trouble.until = now + retry_delay(trouble.tries, self.rng)
        return trouble.until if trouble.until > now else None

    def retry_now(self) -> None:
        """Let every event be tried again at once; what counts against it stays."""
        for trouble in self._events.values():
            trouble.until, trouble.pause_pending = 0.0, False

    def settle(self, event_id: str) -> None:
        """Forget an event that is applied or parked."""
        if self._events:
            self._events.pop(event_id, None)

    def forget(self, event_ids: Iterable[str]) -> None:
        """Forget the events of a lane that is given up or lost."""
        for event_id in event_ids:
            self.settle(event_id)

    def get(self, event_id: str) -> Trouble | None:
        """Return what is known of an event, None if it never failed."""
        return self._events.get(event_id) if self._events else None

    def has_any(self, event_ids: Iterable[str]) -> bool:
        """Say whether one of these failed before, and goes alone until it is settled."""
        return bool(self._events) and any(event_id in self._events for event_id in event_ids)

    def has_hung_too_often(self, event_id: str) -> bool:
        """Say whether an event has hung as often as it may."""
        trouble = self.get(event_id)
        return trouble is not None and trouble.hung and trouble.tries >= self.attempts

    def copy(self) -> "Troubles":
        """Return the troubles of the next instance, which knows what this one knew."""
        heir = Troubles(self._clock, self.rng, self.attempts)
        heir.served = self.served
        heir._events = {name: msgspec.structs.replace(one) for name, one in self._events.items()}
        return heir
