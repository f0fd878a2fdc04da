"""The applier of transactional providers commits effects, ledger and checkpoint as one (G4)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memorybus.errors import LeaseLost, ProviderError, Unavailable
from memorybus.log.entry import LoggedEvent
from memorybus.log.stream import START
from memorybus.redis.keys import lane_name
from memorybus_providers.base import Fence, Progress, Transaction, TransactionalProvider

from memorybus_workers.apply.applier import OpenInstance
from memorybus_workers.apply.serial import ChunkOutcome, SerialApplier
from memorybus_workers.calls.allowance import Unbounded
from memorybus_workers.calls.retry import describe_failure
from memorybus_workers.lanes.lane import Lane
from memorybus_workers.lanes.window import StartPoint
from memorybus_workers.logs import bind_calls


class TransactionalApplier(SerialApplier):
    """Applies whole chunks; if one fails, it applies the events of that chunk one by one.

    The ledger replaces the done-set: it says which events above the checkpoint are done.
    """

    def __init__(self, instance: OpenInstance, store: TransactionalProvider) -> None:
        super().__init__(instance)
        self._store = store
        self._allowance = Unbounded()  # its calls go to no service
        self._whole = False

    def newest_epoch(self, partition: int) -> int:
        progress = self._read_progress(partition)
        return progress.epoch if progress else 0

    def _read_progress(self, partition: int) -> Progress | None:
        self._activity.enter("progress")
        try:
            return self._store.progress(lane_name(partition))
        except Exception as error:
            raise _as_provider_error(error) from error
        finally:
            self._activity.end()

    def begin(self, lane: Lane) -> StartPoint:
        """Return the provider's own checkpoint, and write our epoch next to it at once (G5)."""
        known = self._read_progress(lane.partition)
        # A new store begins at the log's beginning, wherever the lane's checkpoint in Redis is.
        entry, n = (known.entry, known.n) if known else (START, 0)
        self._write_checkpoint(lane, entry, n)
        return StartPoint(entry, n)

    def pin_checkpoint(self, lane: Lane) -> None:
        self._write_checkpoint(lane, lane.window.entry, lane.window.n)

    def _write_checkpoint(self, lane: Lane, entry: str, n: int) -> None:
        try:
            with self._transaction(lane) as transaction:
                transaction.record((), Progress(lane.epoch, entry, n))
        except LeaseLost:
            self._activity.end_interrupted()
            raise
        except Exception as error:
            self._activity.end_interrupted()
            raise _as_provider_error(error) from error

    @contextmanager
    def _transaction(self, lane: Lane) -> Iterator[Transaction]:
        """Open a transaction; each of its steps is watched for a hang."""
        self._activity.enter("a transaction's begin")
        with self._store.transaction(Fence(lane_name(lane.partition), lane.epoch)) as transaction:
            self._activity.end()
            yield transaction
            self._activity.enter("a transaction's commit")
        self._activity.end()

    def _apply_chunk(self, lane: Lane, events: Sequence[LoggedEvent]) -> ChunkOutcome:
        """Apply a chunk in one transaction; if that fails, apply its events one by one."""
        outcome = ChunkOutcome(set(), {})
        simple = lane.window.idle
        mine = self._put_aside_parked(lane, self._events_to_apply(lane, events, outcome))
        if lane.has_suspects or self._failing_events.has_any(event.envelope.id for event in mine):
            return self._try_one_by_one(lane, mine, outcome)
        served = self._failing_events.served
        try:
            with self._transaction(lane) as transaction:
                said = self._apply_all(lane, transaction, mine)
                progress = self._progress_after(lane, events[-1], whole=simple)
                transaction.record([event.envelope.id for event in mine], progress)
            for event, text in said:
                lane.answers.answer_applied(event, text)
            if self._breaker.has_failures and self._failing_events.served != served:
                self._breaker.note_success()
        except LeaseLost:
            self._activity.end_interrupted()
            raise
        except Unavailable as error:
            self._activity.end_interrupted()
            self._instance.worker.tracing.failed(error)
            self._note_backend_down(error, self._clock.monotonic())
            outcome.taken = False
        except BaseException:
            self._activity.end_interrupted()
            return self._try_one_by_one(lane, mine, outcome)
        return outcome

    def _events_to_apply(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: ChunkOutcome
    ) -> Sequence[LoggedEvent]:
        calling = self._events_to_call(lane, events)
        if lane.window.idle:
            return calling
        return [event for event in calling if not self._must_wait(lane, event, outcome)]

    def _apply_all(
        self, lane: Lane, transaction: Transaction, events: Sequence[LoggedEvent]
    ) -> list[tuple[LoggedEvent, str]]:
        """Call the hooks for events that the ledger does not have; return the replies."""
        done = set(transaction.applied([event.envelope.id for event in events]))
        said: list[tuple[LoggedEvent, str]] = []
        bind_calls(self._activity, events)
        for event in events:
            if event.envelope.id not in done:
                text = self._call(lane, event)
                done.add(event.envelope.id)  # the log may have it twice
                if text is not None:
                    said.append((event, text))
        return said

    def _try_one_by_one(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: ChunkOutcome
    ) -> ChunkOutcome:
        simple = lane.window.idle
        for event in events:
            if outcome.delays and self._must_wait(lane, event, outcome):
                continue
            self._whole = simple and not outcome.left
            try:
                outcome.note(event, self._try(lane, event))
            finally:
                self._whole = False
        return outcome

    def _apply_one(self, lane: Lane, event: LoggedEvent) -> None:
        """Apply an event in its own transaction; above open ones, only the ledger has it."""
        said: str | None = None
        with self._transaction(lane) as transaction:
            if not transaction.applied([event.envelope.id]):
                said = self._call(lane, event)
            transaction.record(
                [event.envelope.id], self._progress_after(lane, event, whole=self._whole)
            )
        lane.answers.answer_applied(event, said)

    def _progress_after(self, lane: Lane, event: LoggedEvent, *, whole: bool) -> Progress:
        if whole:
            return Progress(lane.epoch, event.position.entry, event.position.n)
        return Progress(lane.epoch, lane.window.entry, lane.window.n)


def _as_provider_error(error: Exception) -> ProviderError:
    return error if isinstance(error, ProviderError) else Unavailable(describe_failure(error))
