"""The appliers that call their provider from one thread, one event after the other."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from memorybus.errors import ArchiveError, LeaseLost, Transient, Unavailable
from memorybus.events import Omitted
from memorybus.log.entry import LoggedEvent
from memorybus_providers.base import HookContext

from memorybus_workers.apply.applier import Applier, OpenInstance
from memorybus_workers.calls.retry import DONE, PARKED, RetryAt, TryVerdict
from memorybus_workers.lanes.lane import COMMIT_EVERY, Lane
from memorybus_workers.lanes.parking import BEHIND
from memorybus_workers.logs import bind_calls, bind_event

_FIRST_CHUNK = 64
_MAX_BATCHES_PER_COMMIT = 4
"""The most batches between two commits: after a death their calls are noted."""

SET_BACK_REASON = (
    "Redis was set back to a state before this event, and a `blind` provider cannot tell whether "
    "it was applied: retry it if not, else discard it"
)
"""Why an event of a `blind` provider waits for an operator (G4)."""

TURN_SECONDS = 0.25  # seconds after which another lane gets its turn, give or take one call


class ChunkOutcome(msgspec.Struct):
    """The outcome of a chunk."""

    left: set[int]  # the numbers of the events that stay open
    delays: dict[str, float]  # the keys that failed, and when to try each again (monotonic)
    taken: bool = True  # False if the whole chunk has to be read again

    def note(self, event: LoggedEvent, verdict: TryVerdict) -> None:
        """Note the outcome of an event: it stays open if it is to be tried again."""
        if isinstance(verdict, RetryAt):
            self.left.add(event.position.n)
            self.delays[event.envelope.key] = verdict.at


class SerialApplier(Applier):
    """Applies events of providers that are not transactional: only Redis has the checkpoint (G4).

    A ``keyed`` provider recognises a repeated event, so it gets whole chunks, and its lanes commit
    now and then while they have more to do. For ``lookup`` and ``blind`` providers a lane commits
    after every event, so that a crash leaves one event in doubt; a ``lookup`` provider is then
    asked whether it has that event. If Redis was set back by more than its last moment, many are
    in doubt: those of a ``blind`` provider are parked, since an operator has to decide.
    """

    def __init__(self, instance: OpenInstance) -> None:
        super().__init__(instance)
        provider = instance.provider
        each = provider.delivery in ("lookup", "blind") and provider.capabilities.handles
        self._is_blind = provider.delivery == "blind"
        self._largest = 1 if each else self._settings.batch
        self._chunk = min(self._largest, _FIRST_CHUNK)
        self._turn_ends = self._commit_at = 0.0
        self._stopped = False

    def reach(self) -> int:
        """Return what a turn may read without a commit: one event if each is committed."""
        return 1 if self._largest == 1 else self._settings.batch * _MAX_BATCHES_PER_COMMIT

    # -- a lane's turn ----------------------------------------------------------------------------

    def work(self, lane: Lane) -> bool:
        end = self._commit_at = self._clock.monotonic() + COMMIT_EVERY
        try:
            for number in range(_MAX_BATCHES_PER_COMMIT):
                read_before = lane.window.read_n
                more = self._begin_batch(lane)
                if not self._stopped:
                    more = self.apply(lane, lane.read(self._settings.batch)) or more
                more = more and not self._stopped
                if number and lane.window.read_n == read_before:
                    # Nothing was left, or the rate limit makes us wait: the next turn finds out.
                    more = more or not self._stopped
                    break
                if not more or self._clock.monotonic() >= end:
                    break
        except ArchiveError:
            lane.commit()  # commit the events that were applied before
            raise
        lane.commit()
        return more

    def _begin_batch(self, lane: Lane) -> bool:
        lane.check()
        self._stopped = self._is_paused()
        if self._stopped:
            return False
        self._turn_ends = self._clock.monotonic() + TURN_SECONDS
        window = lane.window
        took_events = lane.catch_up()
        if took_events:
            lane.commit()  # if nothing of that key was left, the checkpoint may move already
        window.wake(self._clock.monotonic())
        for event in window.take(self._settings.batch):
            begun = self._clock.monotonic()
            with self._instance.apply_span([event]):
                verdict = self._try(lane, event)
            if isinstance(verdict, RetryAt):
                window.postpone(event, verdict.at)
            else:
                window.finish(event)
                self._instance.count_settled(
                    [event], self._clock.monotonic() - begun, lane.highest_repeatable
                )
            lane.commit()
            if self._stopped or self._is_paused() or self._is_turn_over():
                break
        return took_events or window.has_ready() or window.key_to_read_again() is not None

    def apply(self, lane: Lane, events: Sequence[LoggedEvent]) -> bool:
        for chunk in self._chunks(events, lane.batch_size(self._chunk)):
            if self._is_paused():
                self._stopped = True
                return False
            self._before_chunk(lane, chunk)
            if lane.careful:
                self._note_calls(lane, self._events_to_call(lane, chunk))
            begun = self._clock.monotonic()
            with self._instance.apply_span(chunk):
                outcome = self._apply_chunk(lane, chunk)
            if outcome.taken:
                took = self._clock.monotonic() - begun
                self._fit_chunk(took)
                self._take_in(lane, chunk, outcome)
                left = outcome.left
                settled = [e for e in chunk if e.position.n not in left] if left else chunk
                self._instance.count_settled(settled, took, lane.highest_repeatable)
            self._stopped = self._stopped or not outcome.taken
            if self._stopped or self._is_turn_over():
                return not self._stopped
        return lane.more

    def _is_turn_over(self) -> bool:
        return self._clock.monotonic() >= self._turn_ends

    def _chunks(self, events: Sequence[LoggedEvent], size: int) -> Iterable[Sequence[LoggedEvent]]:
        """Split what was read. With size 1, events that need a call go alone, others together."""
        if not events:
            return ()
        if size == 1:
            handles = self._apply.handles
            runs = groupby(events, lambda event: handles(type(event.envelope.event)))
            return (
                part
                for called, run in runs
                for part in (([event] for event in run) if called else (list(run),))
            )
        if len(events) <= size:
            return (events,)
        return (events[i : i + size] for i in range(0, len(events), size))

    def _before_chunk(self, lane: Lane, chunk: Sequence[LoggedEvent]) -> None:
        lane.crash("lane.before_apply")
        if self._lookup and not lane.window.idle:
            # Say how far events are sent: otherwise only the lowest open one would be looked up
            # after a crash, and the later ones sent again unasked.
            lane.commit(sent=chunk[-1].position.n)

    def _take_in(self, lane: Lane, chunk: Sequence[LoggedEvent], outcome: ChunkOutcome) -> None:
        """Note in the window what is done; commit if it is time to."""
        lane.crash("lane.after_apply")
        lane.window.take_in(chunk, outcome.left)
        for key, until in outcome.delays.items():
            lane.window.delay(key, until)
        if self._largest == 1 or lane.careful or self._clock.monotonic() >= self._commit_at:
            lane.commit()
            self._commit_at = self._clock.monotonic() + COMMIT_EVERY

    def _fit_chunk(self, took: float) -> None:
        """Choose the next chunk's size, so that one takes a part of a turn."""
        if took > TURN_SECONDS / 2:
            self._chunk = max(1, self._chunk // 2)
        elif took < TURN_SECONDS / 8 and self._chunk < self._largest:
            self._chunk = min(self._largest, self._chunk * 2)

    def drain(self, lane: Lane) -> bool:
        """Commit what a failed turn left; only an abandoned call may still be in flight."""
        lane.commit()
        return self.is_at_rest(lane)

    # -- a chunk ----------------------------------------------------------------------------------

    def _apply_chunk(self, lane: Lane, events: Sequence[LoggedEvent]) -> ChunkOutcome:
        """Call the hooks in order; a failing key waits or is parked, and the other keys go on."""
        outcome = ChunkOutcome(set(), {})
        simple = lane.window.idle
        calling = self._events_to_call(lane, events)
        if simple and self._is_calm(lane):
            calling = self._call_quickly(lane, calling, outcome)
        for event in calling:
            if (outcome.delays or not simple) and self._must_wait(lane, event, outcome):
                continue
            outcome.note(event, self._try(lane, event))
        return outcome

    def _events_to_call(self, lane: Lane, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        if lane.parked.keys:
            return [e for e in events if type(e.envelope.event) is not Omitted]
        handles = self._apply.handles
        return [e for e in events if handles(type(e.envelope.event))]

    def _is_calm(self, lane: Lane) -> bool:
        """Return whether calls need no check before or after them."""
        uneasy = (
            self._lookup
            or lane.set_back_upto
            or self._allowance.bounded
            or self._failing_events
            or self._breaker.has_failures
            or not self.is_at_rest(lane)
        )
        return not (uneasy or lane.has_suspects or lane.parked.keys or self._limits)

    def _call_quickly(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: ChunkOutcome
    ) -> Sequence[LoggedEvent]:
        """Apply events until one fails, with little work for each; return the events behind it."""
        bind_calls(self._activity, events)
        begin, end, lease, sends = (
            self._activity.begin,
            self._activity.end,
            lane.lease,
            self._lane_to_guard(lane),
        )
        hook_of, timeout = self._apply.hook_of, self._settings.call_timeout
        for index, event in enumerate(events):
            at = event.envelope
            event_id, what = at.id, at.event
            try:
                if begin(event_id, sends) + timeout >= lease.until or lease.lost:
                    lane.check(timeout)
                # The context is made here: calling `_context` would make the loop a tenth slower.
                said = hook_of(type(what))(
                    what,
                    HookContext(at.scope, at.session, event_id, event.position, at.at, timeout),
                )
                if said is not None:
                    end()
                    lane.answers.answer_applied(event, said)
            except LeaseLost:
                end()
                raise
            except BaseException as error:
                self._failing_events.served += index
                outcome.note(event, self._handle_failed_try(lane, event, error))
                return events[index + 1 :]
        end()
        self._failing_events.served += len(events)
        return ()

    def _must_wait(self, lane: Lane, event: LoggedEvent, outcome: ChunkOutcome) -> bool:
        """Whether an event must not be tried now: it is done, or its key or provider waits."""
        if lane.window.is_done(event.position.n):
            return True
        key = event.envelope.key
        waits = key in outcome.delays or key in lane.window.keys or self._is_paused()
        if waits:
            outcome.left.add(event.position.n)
        return waits

    # -- one event --------------------------------------------------------------------------------

    @bind_event
    def _try(self, lane: Lane, event: LoggedEvent) -> TryVerdict:
        lane.check(self._settings.call_timeout)
        if event.envelope.key in lane.parked.keys:
            lane.parked.put_aside([event], BEHIND)
            return PARKED
        uneasy = lane.careful or bool(self._failing_events) or not self.is_at_rest(lane)
        uneasy = uneasy or self._may_have_been_sent(lane, event)
        verdict = self._decide_before_call(lane, event) if uneasy else None
        verdict = verdict or self._take_allowance(event)
        if verdict is not None:
            return verdict
        try:
            self._apply_one(lane, event)
        except LeaseLost:
            self._activity.end_interrupted()
            raise
        except BaseException as error:  # sys.exit() in a provider counts as a refusal
            return self._handle_failed_try(lane, event, error)
        if uneasy:
            if lane.kills(event.position.n):
                self._note_survival(lane, [event])
            self._failing_events.settle(event.envelope.id)
        if self._breaker.has_failures and self._apply.handles(type(event.envelope.event)):
            self._breaker.note_success()
        return DONE

    def _may_have_been_sent(self, lane: Lane, event: LoggedEvent) -> bool:
        """Tell whether a provider that cannot be asked may have had an event before a set-back."""
        return self._is_blind and event.resent and event.position.n <= lane.set_back_upto

    def _decide_before_call(self, lane: Lane, event: LoggedEvent) -> TryVerdict | None:
        if self._may_have_been_sent(lane, event):
            self._park(lane, event, self._failure(event, SET_BACK_REASON))
            return PARKED
        if self._park_if_hung_too_often(lane, event):
            return PARKED
        event_id = event.envelope.id
        wait = self._failing_events.retry_at(event_id)
        wait = wait or lane.abandoned_calls.retry_at(lane.lease.key, event_id)
        if wait is not None:
            return wait
        verdict = self._before_try(lane, event)
        self._stopped = self._stopped or isinstance(verdict, RetryAt)
        return verdict

    def _handle_failed_try(
        self, lane: Lane, event: LoggedEvent, error: BaseException
    ) -> TryVerdict:
        if not self._activity.end_interrupted() and isinstance(error, Transient | OSError):
            error = Unavailable(str(error))  # opening or committing caused it, not this event
        self._note_survival(lane, [event])
        return self._handle_failure(lane, event, error)
