"""The applier applies a lane's events to one provider instance.

How it applies them depends on the provider's delivery class (G4). A transactional provider takes a
batch, its ledger and its checkpoint in one transaction (`transactional`). The others are called
event by event (`serial`), or for several keys at once (`parallel`), and the checkpoint in Redis
follows. Every applier skips what is done, puts parked keys aside *before* the checkpoint passes
them, and holds up only the key that fails.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
from memorybus.errors import LeaseLost, Transient, Unavailable
from memorybus.log.entry import LoggedEvent
from memorybus.registry.lanes import decode_done_above
from memorybus.text.display import count_text
from memorybus_providers.base import HookContext, MemoryProvider
from memorybus_providers.dispatch import bind

from memorybus_workers.apply.pool import Pool
from memorybus_workers.calls.allowance import Allowance, Unbounded
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.calls.retry import (
    PARKED,
    BackendDown,
    Parked,
    ParkKey,
    RetryAt,
    RetryIn,
    decide_retry,
    describe_failure,
)
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.answers import forget_warm_results
from memorybus_workers.lanes.caution import MAX_KILLS, RETRY_SECONDS
from memorybus_workers.lanes.context import InstanceContext
from memorybus_workers.lanes.lane import Lane
from memorybus_workers.lanes.parking import BEHIND, Failure, NoteTry, failure_of
from memorybus_workers.lanes.window import StartPoint
from memorybus_workers.logs import bind_event

_log = logging.getLogger("memorybus")
HUNG_REASON = "every try outlived call_timeout, or the time limit of its hook"
STILL_UNDER_WAY = "an earlier call for it hangs and may still take effect: retry it in some minutes"


class OpenInstance(msgspec.Struct, frozen=True):
    """A provider instance that is open, and what is known of its calls."""

    context: InstanceContext  # the instance, in its worker
    provider: MemoryProvider  # the provider itself
    activity: ThreadActivity  # the call that its own thread is busy with
    failing_events: FailingEvents  # its failing events
    breaker: Breaker  # holds its calls back while its backend is down
    allowance: Allowance = Unbounded()  # bounds how many calls are made


class Applier:
    """Applies events for every lane of one provider instance. Belongs to the provider's thread."""

    pool: Pool | None = None
    """Its threads, if it makes several calls at once."""

    def __init__(self, instance: OpenInstance) -> None:
        context, worker = instance.context, instance.context.worker
        self.dirty: set[Lane] = set()  # lanes whose progress is not committed yet
        self._instance = context
        self._provider = instance.provider
        self._settings = worker.settings
        self._clock = worker.clock
        self._activity = instance.activity
        self._failing_events = instance.failing_events
        self._breaker = instance.breaker
        self._allowance = instance.allowance
        self._isolation = worker.isolation
        self._lookup = instance.provider.delivery == "lookup"
        retracting = partial(forget_warm_results, context) if context.role.answering else None
        self._apply = bind(instance.provider, retracting)
        self._limits = instance.provider.time_limits

    # -- a lane's life ----------------------------------------------------------------------------

    def newest_epoch(self, partition: int) -> int:
        """Return the newest epoch that the provider's own store has seen of a lane; 0 if none."""
        return 0

    def reach(self) -> int:
        """Return for how many events past the last one known to be done it may make calls (G6)."""
        raise NotImplementedError

    def begin(self, lane: Lane) -> StartPoint:
        """Return where the lane continues, and claim it in the provider's own store, if any."""
        owned = lane.lease.lane
        return StartPoint(owned.entry, owned.n, decode_done_above(owned.done, owned.n))

    def work(self, lane: Lane) -> bool:
        """Read, apply and commit for a while; return whether there may be more to do now."""
        raise NotImplementedError

    def apply(self, lane: Lane, events: Sequence[LoggedEvent]) -> bool:
        """Apply the events that may be applied now; return whether there may be more to do now."""
        raise NotImplementedError

    @bind_event
    def apply_dead_letter(
        self, lane: Lane, event: LoggedEvent, note_try: NoteTry
    ) -> Failure | None:
        """Apply a dead letter; return None if it is applied now or was before, else the failure.

        The call may end this process, so `note_try` is called right before it. `Unavailable`:
        later.
        """
        if self._is_paused():
            raise Unavailable("the provider is paused")
        if self._take_allowance(event):
            raise Unavailable("the provider's call limit is reached for now")
        lane.check(self._settings.call_timeout)
        if self._pop_hang(event):
            return self._failure(event, HUNG_REASON)
        if lane.abandoned_calls.retry_at(lane.lease.key, event.envelope.id):
            return self._failure(event, STILL_UNDER_WAY)
        return note_try() or self._apply_dead_letter_now(lane, event)

    def _apply_dead_letter_now(self, lane: Lane, event: LoggedEvent) -> Failure | None:
        lane.check(self._settings.call_timeout)
        try:
            with self._instance.apply_span([event]):
                self._apply_one(lane, event)
        except LeaseLost:
            self._activity.end_interrupted()
            raise
        except BaseException as error:
            if not self._activity.end_interrupted() and isinstance(error, Transient | OSError):
                raise Unavailable(str(error)) from error
            if isinstance(error, Unavailable):
                raise
            return self._failure(event, describe_failure(error), error)
        finally:
            self._failing_events.settle(event.envelope.id)
        return None

    def pin_checkpoint(self, lane: Lane) -> None:
        """Set the provider's own checkpoint, if it keeps one, to the lane's."""

    def collect(self) -> set[int]:
        """Take the results of other threads; return the partitions that they concern."""
        return set()

    def has_room(self) -> bool:
        """Return whether the pool could take more keys now; False without a pool."""
        return False

    def drain(self, lane: Lane) -> bool:
        """Start no new call for a lane; return whether none is in flight."""
        return self.is_at_rest(lane)

    def is_at_rest(self, lane: Lane) -> bool:
        """Whether no call of a lane is in flight, nor an abandoned one that may take effect."""
        return not lane.abandoned_calls.has_pending(lane.lease.key)

    def cancel_drain(self, lane: Lane) -> None:
        """Note that a lane which was to be given up stays."""

    def forget(self, lane: Lane) -> None:
        """Forget what is known of the events of a lane that is given up or lost."""
        if self._failing_events:
            self._failing_events.forget(event.envelope.id for event in lane.window.held_events())

    def stop(self) -> None:
        """End what this applier started."""

    # -- one event --------------------------------------------------------------------------------

    def _is_paused(self) -> bool:
        return self._clock.monotonic() < max(self._breaker.until, self._allowance.until)

    def _take_allowance(self, event: LoggedEvent) -> RetryAt | None:
        """Use one of the calls that may be made; if there is none, return when to try again."""
        if not (self._allowance.bounded and self._apply.handles(type(event.envelope.event))):
            return None
        return None if self._allowance.take() else RetryAt(self._allowance.until)

    def _apply_one(self, lane: Lane, event: LoggedEvent) -> None:
        """Apply one event on this thread; a ``lookup`` backend is asked first if it is in doubt."""
        if not self._apply.handles(type(event.envelope.event)):
            return
        if self._lookup and self._in_doubt(lane, event):
            self._activity.begin(event.envelope.id)
            known = self._provider.knows(event.envelope.id, self._context(event))
            self._activity.end()
            if known:
                return
            lane.check(self._settings.call_timeout)  # the answer may have taken long
        lane.answers.answer_applied(event, self._call(lane, event))

    def _in_doubt(self, lane: Lane, event: LoggedEvent) -> bool:
        """Return whether an earlier try, or one before a loss, may have sent the event already."""
        known = self._failing_events.get(event.envelope.id) is not None
        return known or event.resent or event.position.n <= max(lane.doubt, lane.window.n)

    def _is_fresh(self, lane: Lane, event: LoggedEvent) -> bool:
        """Return whether an event may share a call with others.

        It has not failed, is neither in doubt nor suspected, and its key is not parked.
        """
        known = self._failing_events.get(event.envelope.id) is not None
        in_doubt = self._lookup and self._in_doubt(lane, event)
        suspected = lane.kills(event.position.n) > 0
        return not (known or in_doubt or suspected or event.envelope.key in lane.parked.keys)

    def _call(self, lane: Lane, event: LoggedEvent) -> str | None:
        """Call the hook of an event; return what it replies."""
        envelope = event.envelope
        if not self._apply.handles(type(envelope.event)):
            return None
        if type(envelope.event) in self._limits:
            said = self._call_with_own_limit(lane, event, self._activity)
        else:
            self._activity.begin(envelope.id, self._lane_to_guard(lane))
            said = self._apply(envelope.event, self._context(event))
        self._activity.end()
        self._failing_events.served += 1
        return said

    def _call_with_own_limit(
        self, lane: Lane, event: LoggedEvent, activity: ThreadActivity
    ) -> str | None:
        context = self._context(event)
        with lane.extended_for(context.deadline):
            activity.begin_next(event.envelope.id, self._lane_to_guard(lane), context.deadline)
            return self._apply(event.envelope.event, context)

    def _lane_to_guard(self, lane: Lane) -> str:
        """Return the lane key for `ThreadActivity.begin`; "" if repeating a call does no harm."""
        return lane.lease.key if self._provider.delivery in ("lookup", "blind") else ""

    def _context(self, event: LoggedEvent) -> HookContext:
        envelope = event.envelope
        return HookContext(
            envelope.scope,
            envelope.session,
            envelope.id,
            event.position,
            envelope.at,
            self._limits.get(type(envelope.event), self._settings.call_timeout),
        )

    @bind_event
    def _handle_failure(
        self, lane: Lane, event: LoggedEvent, error: BaseException, served: int | None = None
    ) -> Parked | RetryAt:
        """Decide what follows a failure of an event, and do it."""
        if isinstance(error, LeaseLost):
            raise error
        self._instance.worker.tracing.failed(error)
        now = self._clock.monotonic()
        tries = 0
        if not isinstance(error, Unavailable):  # a backend that is down is no event's fault
            up = self._breaker.is_closed
            tries = self._failing_events.note_failure(
                event.envelope.id, backend_up=up, served=served
            ).tries
        match decide_retry(error, tries, self._settings.attempts, self._failing_events.rng):
            case BackendDown():
                if self._lookup:
                    self._failing_events.note_doubt(event.envelope.id)
                return RetryAt(self._note_backend_down(error, now))
            case RetryIn(delay):
                self._instance.count_mishap("retried")
                self._breaker.note_strike(now, describe_failure(error))
                return RetryAt(max(now + delay, self._breaker.until))
            case ParkKey():
                self._breaker.note_success()  # it answered, or serves others: the event is at fault
                self._park(lane, event, self._failure(event, describe_failure(error), error))
                return PARKED

    def _note_backend_down(self, error: BaseException, now: float) -> float:
        """Open the breaker; return the time until which it holds calls back."""
        was_closed = self._breaker.is_closed
        delay = self._breaker.note_failure(now, describe_failure(error))
        if was_closed:
            name = self._provider.config.name
            _log.warning(
                "provider %s: %s; its lanes wait %.1f s, nothing is parked", name, error, delay
            )
        return self._breaker.until

    def _failure(self, event: LoggedEvent, why: str, error: BaseException | None = None) -> Failure:
        failing_event = self._failing_events.get(event.envelope.id)
        return failure_of(why, failing_event, self._clock.now_ms(), error)

    def _park_if_hung_too_often(self, lane: Lane, event: LoggedEvent) -> bool:
        """Park an event that has hung as often as it may; return whether it had."""
        if not self._failing_events.has_hung_too_often(event.envelope.id):
            return False
        self._breaker.note_success()  # it serves others: what hangs is the event
        self._park(lane, event, self._failure(event, HUNG_REASON))
        return True

    def _pop_hang(self, event: LoggedEvent) -> bool:
        failing_event = self._failing_events.get(event.envelope.id)
        self._failing_events.settle(event.envelope.id)
        return failing_event is not None and failing_event.hung

    @bind_event
    def _park(self, lane: Lane, event: LoggedEvent, failure: Failure) -> None:
        _log.error(
            "provider %s: event %s is parked after %s: %s; later events of its key %r wait",
            self._provider.config.name,
            event.envelope.id,
            count_text(failure.attempts, "attempt"),
            failure.reason,
            event.envelope.key,
        )
        lane.parked.put_aside([event], failure)
        self._instance.count_mishap("parked")
        self._failing_events.settle(event.envelope.id)

    def _before_try(self, lane: Lane, event: LoggedEvent) -> Parked | RetryAt | None:
        """Note a call where owners died; park a killer; wait while another is tried alone."""
        n = event.position.n
        if not (lane.careful and self._apply.handles(type(event.envelope.event))):
            return None
        kills, now = lane.kills(n), self._clock.monotonic()
        if kills >= MAX_KILLS:
            at, why = self._clock.now_ms(), f"it ended its worker {kills} times"
            self._park(lane, event, Failure(why, kills, "", at, at))
            return PARKED
        if kills and not self._isolation.begin(lane.lease, n):
            return RetryAt(now + RETRY_SECONDS)
        lane.begin_calls([n])
        return None

    def _note_calls(self, lane: Lane, events: Iterable[LoggedEvent]) -> None:
        """Note in one round trip, on a lane whose owners died, what the next calls are for."""
        numbers = [event.position.n for event in events]
        lane.begin_calls(n for n in numbers if not (lane.kills(n) or lane.window.is_done(n)))

    def _note_survival(self, lane: Lane, events: Sequence[LoggedEvent]) -> None:
        """Note that a call on a lane whose owners died is over, and this worker lives."""
        lane.survive_calls(event.position.n for event in events)
        for event in events:
            self._isolation.end(lane.lease, event.position.n)

    def _put_aside_parked(self, lane: Lane, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        parked = lane.parked.keys
        if not parked:
            return events
        lane.parked.put_aside([e for e in events if e.envelope.key in parked], BEHIND)
        return [event for event in events if event.envelope.key not in parked]
