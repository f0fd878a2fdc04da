"""The applier of slow providers calls the provider for several keys at once, each key in order.

Events that are done out of order are kept in the checkpoint's done-set, so that a crash repeats
only what was not done. Before a ``lookup`` provider gets an event, the checkpoint records that the
backend may have it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile

from memorybus.errors import ArchiveError, LeaseLost, ProviderHung, Transient
from memorybus.log.entry import LoggedEvent

from memorybus_workers.apply.applier import HUNG_REASON, Applier, OpenInstance
from memorybus_workers.apply.bulk import is_turn, send_turns, sort_outcomes, takes_turns_in_bulk
from memorybus_workers.apply.pool import CallResult, Pool, Task, Withdrawn
from memorybus_workers.calls.retry import PARKED, Parked, RetryAt, raise_unless_lane_error
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.lanes.lane import COMMIT_EVERY, Lane
from memorybus_workers.lanes.parking import BEHIND
from memorybus_workers.logs import bind_calls, bind_lane

_CALLS_PER_THREAD = 2
"""How many calls the pool gets for each of its threads, so that no thread waits for work."""

_PROBE_POLL_SECONDS = 0.02  # seconds between two checks of whether a probe has returned


class PartlyFailed(BaseException):
    """Raised for a call for several turns of which some failed, named by event id."""

    def __init__(self, failed: Mapping[str, BaseException]) -> None:
        super().__init__(f"{len(failed)} turns failed")
        self.failed = failed


class ParallelApplier(Applier):
    """Applies events of ``keyed`` and ``lookup`` providers whose hooks allow several threads."""

    def __init__(self, instance: OpenInstance, wake: Callable[[], None]) -> None:
        super().__init__(instance)
        self._size = instance.context.concurrency
        name = instance.provider.config.name
        self.pool: Pool = Pool(name, self._size, self._clock, self._run, wake)  # its threads
        self._in_flight: dict[Lane, int] = {}
        self._leaving: set[Lane] = set()
        self._failed: dict[Lane, Exception] = {}
        self._committed_at: dict[Lane, float] = {}
        self._bulk = takes_turns_in_bulk(instance.provider)

    def reach(self) -> int:
        """Return the size of the window: any event in it may be under way."""
        return self._settings.window

    # -- a lane's turn ----------------------------------------------------------------------------

    def work(self, lane: Lane) -> bool:
        """Read more events, hand out those that are ready, and commit now and then."""
        if lane in self._failed:
            raise self._failed.pop(lane)
        lane.check()
        unreadable: ArchiveError | None = None
        more = False
        try:
            more = self._read_on(lane)
        except ArchiveError as error:
            unreadable = error  # the events that were read before go on
        lane.window.wake(self._clock.monotonic())
        self._hand_out(lane)
        now = self._clock.monotonic()
        last = self._committed_at.get(lane, 0.0)
        if lane not in self._in_flight or now >= last + COMMIT_EVERY:
            lane.commit()
            self._committed_at[lane] = now
            self.dirty.discard(lane)
        if unreadable is not None:
            raise unreadable
        return more

    def _read_on(self, lane: Lane) -> bool:
        """Read as many events as there is room for; return whether there may be more now."""
        if self._is_paused():
            return False
        if lane.catch_up():
            return True
        batch, room = self._settings.batch, lane.window.room()
        if room < min(batch, self._settings.window) // 4:
            return False
        events = lane.read(batch)
        return bool(events) and self.apply(lane, events)

    def apply(self, lane: Lane, events: Sequence[LoggedEvent]) -> bool:
        """Take events into the window, from where `_hand_out` gives them to the pool."""
        handles, is_done = self._apply.handles, lane.window.is_done
        todo = [
            event
            for event in events
            if handles(type(event.envelope.event)) and not is_done(event.position.n)
        ]
        left = {event.position.n for event in self._put_aside_parked(lane, todo)}
        lane.window.take_in(events, left)
        if left and self._lookup:
            lane.commit(sent=lane.window.read_n)
        return lane.more and lane.window.room() > 0

    def _hand_out(self, lane: Lane) -> None:
        window = lane.window
        if lane in self._leaving or not window.has_ready():
            return
        lane.crash("lane.before_apply")
        events = list(window.take(self._room()))
        if lane.careful and self._breaker.is_closed:
            self._note_calls(lane, events)
        now = self._clock.monotonic()
        for event in events:
            wait = self._decide_wait(lane, event, now)
            if wait is None:
                self._submit(lane, event)
            else:
                window.postpone(event, wait.at)

    def _decide_wait(self, lane: Lane, event: LoggedEvent, now: float) -> RetryAt | None:
        """Return until when an event waits; None if its call is to begin (perhaps as the probe)."""
        wait = lane.abandoned_calls.retry_at(lane.lease.key, event.envelope.id)
        if wait is not None:
            return wait
        if not self._breaker.admit(now):
            return RetryAt(max(self._breaker.until, now + _PROBE_POLL_SECONDS))
        refused = self._take_allowance(event)
        if refused is not None:
            self._breaker.release_probe()
        return refused

    def _submit(self, lane: Lane, event: LoggedEvent) -> None:
        try:
            verdict = self._before_try(lane, event)
        except BaseException:
            self._breaker.release_probe()
            raise
        if verdict is None:
            self._in_flight[lane] = self._in_flight.get(lane, 0) + 1
            probes = not self._breaker.is_closed
            behind = self._turns_behind(lane, event)
            if behind and lane.careful:
                lane.begin_calls(turn.position.n for turn in behind)
            self.pool.submit(Task(lane, event, self._failing_events.served, probes, behind))
        else:
            self._breaker.release_probe()
            self._put_back(lane, event, verdict)

    def _turns_behind(self, lane: Lane, event: LoggedEvent) -> tuple[LoggedEvent, ...]:
        if not self._bulk or not self._breaker.is_closed:
            return ()
        most = islice(lane.window.waiting_from(event), self._provider.bulk_turns)
        run = list(takewhile(lambda turn: is_turn(turn) and self._is_fresh(lane, turn), most))
        if len(run) < 2:
            return ()
        for turn in run:  # a turn that gets no answer is tried alone the next time
            self._failing_events.note_doubt(turn.envelope.id)
        return tuple(run[1:])

    def _put_back(self, lane: Lane, event: LoggedEvent, verdict: Parked | RetryAt) -> None:
        if isinstance(verdict, RetryAt):
            lane.window.postpone(event, verdict.at)
        else:
            lane.parked.put_aside(
                lane.window.waiting_from(event)[1:], BEHIND
            )  # they wait with the parked event (G6)
            lane.window.pass_over(event)

    def _room(self) -> int:
        """Return how many calls may be handed out; few wait in the pool, so that pauses work."""
        return max(0, _CALLS_PER_THREAD * self._size - self.pool.unfinished)

    def has_room(self) -> bool:
        return self._room() > 0

    # -- in the threads ---------------------------------------------------------------------------

    def _run(self, task: Task, activity: ThreadActivity) -> str | None:
        lane, event = bind_lane(task.lane), task.event
        bind_calls(activity, task.events)
        if lane in self._leaving or not (self._breaker.is_closed or task.probes):
            raise Withdrawn
        with self._instance.apply_span(task.events):
            if task.behind:
                self._run_several(task, activity)
                return None
            return self._run_one(lane, event, activity)

    def _run_one(self, lane: Lane, event: LoggedEvent, activity: ThreadActivity) -> str | None:
        event_id, context = event.envelope.id, self._context(event)
        asks = self._lookup and self._in_doubt(lane, event)
        lane.check(self._settings.call_timeout)
        activity.begin(event_id, "" if asks else self._lane_to_guard(lane))
        if asks:
            if self._provider.knows(event_id, context):
                return None
            activity.begin_next(event_id, self._lane_to_guard(lane))
            lane.check(self._settings.call_timeout)
        if type(event.envelope.event) in self._limits:
            return self._call_with_own_limit(lane, event, activity)
        return self._apply(event.envelope.event, context)

    def _run_several(self, task: Task, activity: ThreadActivity) -> None:
        task.lane.check(self._settings.call_timeout)
        activity.begin_several(
            [event.envelope.id for event in task.events], self._lane_to_guard(task.lane)
        )
        failed = send_turns(self._provider, task.events, self._context)
        if failed:
            raise PartlyFailed(failed)

    # -- what came back ---------------------------------------------------------------------------

    def collect(self) -> set[int]:
        """Take the results of the threads; return the partitions that they concern."""
        for done in self.pool.collect():
            lane = done.task.lane
            left = self._in_flight.pop(lane, 1) - 1
            if left:
                self._in_flight[lane] = left
            if done.given_up:
                lane.abandoned_calls.note(done.given_up)
            if lane.lease.lost:
                self._release_probe(done.task)
                continue
            try:
                self._settle(bind_lane(lane), done)
            except LeaseLost:
                lane.lease.lost = True
                self._release_probe(done.task)
            except Exception as error:
                self._release_probe(done.task)
                self._failed[lane] = raise_unless_lane_error(error, self._provider.config.name)
            self.dirty.add(lane)  # if the lane is lost, its next turn notices that
        return {lane.partition for lane in self.dirty}

    def _settle(self, lane: Lane, done: CallResult) -> None:
        event = done.task.event
        if done.error is not None or lane.kills(event.position.n):
            self._note_survival(lane, done.task.events)
        if isinstance(done.error, Withdrawn):
            self._release_probe(done.task)
            self._failing_events.forget(
                turn.envelope.id for turn in done.task.behind and done.task.events
            )
            lane.window.postpone(event, self._breaker.until)
        elif isinstance(done.error, PartlyFailed):
            self._settle_several(lane, done, done.error.failed)
        elif done.error is None:
            self._note_success(lane, done.task.events, done.took)
            lane.crash("lane.after_apply")
            lane.window.finish_first(done.task.events[:-1])
            lane.window.finish(done.task.events[-1])
            lane.answers.answer_applied(event, done.reply)
        else:
            self._put_back(lane, event, self._handle_failed_call(done.task, done.error))

    def _settle_several(
        self, lane: Lane, done: CallResult, failed: Mapping[str, BaseException]
    ) -> None:
        """Finish the turns before the first failed one; those behind it are tried alone later."""
        task = done.task
        outcomes = sort_outcomes(task.events, failed)
        if outcomes.done:
            self._note_success(lane, outcomes.done, done.took)
            lane.window.finish_first(outcomes.done)
        ((event, why),) = outcomes.failed
        self._put_back(lane, event, self._handle_failure(lane, event, why, task.served))

    def _note_success(self, lane: Lane, events: Sequence[LoggedEvent], took: float) -> None:
        self._instance.count_settled(events, took, lane.highest_repeatable)
        self._failing_events.served += len(events)
        for event in events:
            self._failing_events.settle(event.envelope.id)
        self._breaker.note_success()

    def _release_probe(self, task: Task) -> None:
        if task.probes:
            self._breaker.release_probe()

    def _handle_failed_call(self, task: Task, error: BaseException) -> Parked | RetryAt:
        event_id, served = task.event.envelope.id, task.served
        if task.behind and not isinstance(error, Transient | OSError | LeaseLost):
            return RetryAt(self._clock.monotonic())  # one is at fault: each is tried alone
        if not isinstance(error, ProviderHung):
            return self._handle_failure(task.lane, task.event, error, served)
        self._failing_events.note_hang(event_id, backend_up=self._breaker.is_closed, served=served)
        self._breaker.note_strike(self._clock.monotonic(), HUNG_REASON)
        if self._park_if_hung_too_often(task.lane, task.event):
            return PARKED
        pause = self._failing_events.retry_at(event_id)
        return RetryAt(max(self._breaker.until, pause.at if pause else 0.0))

    # -- the rest ---------------------------------------------------------------------------------

    def is_at_rest(self, lane: Lane) -> bool:
        """Whether no call of a lane is in flight, nor an abandoned one that may take effect."""
        return lane not in self._in_flight and super().is_at_rest(lane)

    def drain(self, lane: Lane) -> bool:
        """Hand out no further event; once no call is in flight, commit and return True."""
        self._leaving.add(lane)
        if not self.is_at_rest(lane):
            return False
        lane.commit()
        self.forget(lane)
        return True

    def cancel_drain(self, lane: Lane) -> None:
        """Note that a lane which was to be given up stays: hand out its events again."""
        if lane in self._leaving:
            self._leaving.discard(lane)
            self.dirty.add(lane)

    def forget(self, lane: Lane) -> None:
        """Forget a lane that another worker owns now: results of its calls are ignored."""
        super().forget(lane)
        self._leaving.discard(lane)
        self._failed.pop(lane, None)
        self.dirty.discard(lane)
        self._committed_at.pop(lane, None)

    def stop(self) -> None:
        self.pool.stop()
