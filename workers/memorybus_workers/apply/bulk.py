"""Applies several turns in one call (`sync_turns`), for providers whose backend accepts that.

Only turns that never failed and are not in doubt go this way. If a turn failed, the later turns of
its key stay open, even if the provider says that it applied them (G3).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from memorybus.errors import LeaseLost, Permanent, Transient
from memorybus.events import TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus_providers.base import HookContext, MemoryProvider, TurnCall

from memorybus_workers.apply.applier import OpenInstance
from memorybus_workers.apply.serial import ChunkOutcome, SerialApplier
from memorybus_workers.calls.retry import RetryAt
from memorybus_workers.lanes.lane import Lane
from memorybus_workers.logs import bind_calls

ContextOf = Callable[[LoggedEvent], HookContext]


def is_turn(event: LoggedEvent) -> bool:
    """Return whether an event is one that `sync_turns` takes."""
    return type(event.envelope.event) is TurnCompleted


def takes_turns_in_bulk(provider: MemoryProvider) -> bool:
    """Return whether a provider gets several turns at once.

    A ``blind`` provider does not: a crash could then repeat every turn of a call (G4).
    """
    overridden = type(provider).sync_turns is not MemoryProvider.sync_turns
    handles = TurnCompleted in provider.capabilities.handles
    return overridden and handles and provider.delivery in ("keyed", "lookup")


class TurnOutcomes(msgspec.Struct, frozen=True):
    """The outcomes of the turns of one call."""

    done: list[LoggedEvent]  # the turns that were applied
    # the first failed turn of each key, with its error
    failed: list[tuple[LoggedEvent, BaseException]]
    behind: list[LoggedEvent]  # the turns that wait behind the failed ones


def sort_outcomes(
    events: Sequence[LoggedEvent], failed: Mapping[str, BaseException]
) -> TurnOutcomes:
    """Sort turns by outcome; `failed` holds the errors of those that failed, by event id."""
    outcomes = TurnOutcomes([], [], [])
    broken: set[str] = set()
    for event in events:
        envelope = event.envelope
        if envelope.key in broken:
            outcomes.behind.append(event)
        elif envelope.id in failed:
            broken.add(envelope.key)
            outcomes.failed.append((event, failed[envelope.id]))
        else:
            outcomes.done.append(event)
    return outcomes


def send_turns(
    provider: MemoryProvider, events: Sequence[LoggedEvent], context_of: ContextOf
) -> Mapping[str, BaseException]:
    turns = [
        TurnCall(event.envelope.event, context_of(event))
        for event in events
        if isinstance(event.envelope.event, TurnCompleted)
    ]
    failed = provider.sync_turns(turns)
    if not isinstance(failed, Mapping):
        raise Permanent(f"sync_turns returned {type(failed).__name__}, not errors by event id")
    strange = [name for name, why in failed.items() if not isinstance(why, Exception)]
    if strange or not failed.keys() <= {event.envelope.id for event in events}:
        raise Permanent("sync_turns names failures of events that it was not given, or no errors")
    return failed


class BulkApplier(SerialApplier):
    """Applies events of ``keyed`` and ``lookup`` providers with a bulk call, from one thread.

    Before a call to a ``lookup`` provider the checkpoint records the last event that the backend
    may have. So a crash leaves only the turns of this call in doubt.
    """

    def __init__(self, instance: OpenInstance) -> None:
        super().__init__(instance)
        self._largest = self._settings.batch
        self._least = self._chunk = min(self._largest, self._provider.bulk_turns)

    def _fit_chunk(self, took: float) -> None:
        """Choose the next chunk's size; it never falls below the turns that one call may hold."""
        super()._fit_chunk(took)
        self._chunk = max(self._chunk, self._least)

    def _before_chunk(self, lane: Lane, chunk: Sequence[LoggedEvent]) -> None:
        lane.crash("lane.before_apply")
        if self._lookup:
            lane.commit(sent=chunk[-1].position.n)

    def _apply_chunk(self, lane: Lane, events: Sequence[LoggedEvent]) -> ChunkOutcome:
        outcome = ChunkOutcome(set(), {})
        for run in self._split_into_runs(lane, self._events_to_call(lane, events), outcome):
            if len(run) > 1:
                self._apply_run(lane, run, outcome)
            else:
                outcome.note(run[0], self._try(lane, run[0]))
        return outcome

    def _split_into_runs(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: ChunkOutcome
    ) -> Iterator[Sequence[LoggedEvent]]:
        run: list[LoggedEvent] = []
        for event in events:
            together = self._goes_in_bulk(lane, event)
            if run and (not together or len(run) >= self._provider.bulk_turns):
                yield run
                run = []
            if self._must_wait(lane, event, outcome):
                continue
            if together:
                run.append(event)
            else:
                yield [event]
        if run:
            yield run

    def _goes_in_bulk(self, lane: Lane, event: LoggedEvent) -> bool:
        calm = self._breaker.is_closed and self.is_at_rest(lane)
        return calm and is_turn(event) and self._is_fresh(lane, event)

    def _apply_run(self, lane: Lane, run: Sequence[LoggedEvent], outcome: ChunkOutcome) -> None:
        wait = self._take_allowance(run[0])
        if wait is not None:
            for event in run:
                outcome.note(event, wait)
            return
        try:
            outcomes = sort_outcomes(run, self._send(lane, run))
        except LeaseLost:
            self._activity.end_interrupted()
            raise
        except BaseException as error:
            self._handle_failed_call(lane, run, error, outcome)
            return
        self._failing_events.served += len(outcomes.done)
        for event in outcomes.done:
            self._failing_events.settle(event.envelope.id)
        if outcomes.done and self._breaker.has_failures:
            self._breaker.note_success()
        for event, why in outcomes.failed:
            outcome.note(event, self._handle_failure(lane, event, why))
        self._try_one_by_one(lane, outcomes.behind, outcome)

    def _send(self, lane: Lane, run: Sequence[LoggedEvent]) -> Mapping[str, BaseException]:
        lane.check(self._settings.call_timeout)
        bind_calls(self._activity, run)
        for event in run:  # a turn without an answer is tried alone the next time
            self._failing_events.note_doubt(event.envelope.id)
        self._activity.begin_several(
            [event.envelope.id for event in run], self._lane_to_guard(lane)
        )
        failed = send_turns(self._provider, run, self._context)
        self._activity.end()
        return failed

    def _handle_failed_call(
        self, lane: Lane, run: Sequence[LoggedEvent], error: BaseException, outcome: ChunkOutcome
    ) -> None:
        """Handle a call that raised: its turns wait after a transient error, else go one by one."""
        self._activity.end_interrupted()
        if isinstance(error, Transient | OSError):
            verdict = self._handle_failure(lane, run[0], error)
            at = verdict.at if isinstance(verdict, RetryAt) else self._breaker.until
            outcome.note(run[0], verdict)
            for event in run[1:]:
                outcome.note(event, RetryAt(at))
        else:
            self._try_one_by_one(lane, run, outcome)

    def _try_one_by_one(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: ChunkOutcome
    ) -> None:
        for event in events:
            if not self._must_wait(lane, event, outcome):
                outcome.note(event, self._try(lane, event))
