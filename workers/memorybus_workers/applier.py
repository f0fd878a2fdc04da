"""The applier: a batch of one lane's events into one provider instance (design, part 5).

Two kinds, by delivery class (G4). A transactional provider takes the whole batch, its ledger and
its checkpoint in one transaction. The others are called event by event, and the checkpoint in
Redis follows after each chunk. Both skip what is done, put parked keys aside *before* the
checkpoint passes them, and find the culprit of a failed batch by going one by one.
"""

import logging
from collections.abc import Callable, Sequence

from memorybus.errors import LeaseLost, StaleEpoch, Transient, Unavailable
from memorybus.events import Position
from memorybus.keys import lane_name
from memorybus.log import START
from memorybus.logged import LoggedEvent
from memorybus.scripts import Acquired
from memorybus.settings import Settings
from memorybus_providers.base import (
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    Transaction,
    TransactionalProvider,
)
from memorybus_providers.dispatch import bind

from memorybus_workers.calls import Calls
from memorybus_workers.deadletter import BEHIND
from memorybus_workers.place import Later, Place
from memorybus_workers.retry import decide, reason

_log = logging.getLogger("memorybus")

HUNG = "every try outlived call_timeout"


class Applier:
    """Applies chunks for every lane of one provider instance. Belongs to one thread.

    Attributes:
        chunk: how many events go into one `apply`; a commit follows each.
    """

    def __init__(self, provider: MemoryProvider, settings: Settings, calls: Calls) -> None:
        """Bind the provider's hooks."""
        self.chunk = settings.batch
        self._provider = provider
        self._settings = settings
        self._calls = calls
        self._apply = bind(provider)

    def floor(self, partition: int) -> int:
        """Return the newest epoch that the provider's own store has seen of a lane; 0 if none."""
        return 0

    def begin(self, lane: Place, checkpoint: Acquired) -> Progress:
        """Return where the lane goes on, and claim it in the provider's own store if it has one."""
        return Progress(checkpoint.epoch, checkpoint.entry, checkpoint.n)

    def apply(self, lane: Place, events: Sequence[LoggedEvent]) -> None:
        """Apply a chunk: when this returns, all of it is applied or put aside.

        Raises:
            Unavailable: the backend is down: nothing is parked, try again later.
            LeaseLost: the lane has another owner.
        """
        raise NotImplementedError

    def _call(self, event: LoggedEvent) -> None:
        envelope = event.envelope
        if not self._apply.handles(type(envelope.event)):
            return
        self._calls.begin(envelope.id)
        self._apply(envelope.event, self._context(event))
        self._calls.end()

    def _context(self, event: LoggedEvent) -> HookContext:
        envelope = event.envelope
        return HookContext(
            envelope.scope,
            envelope.session,
            envelope.id,
            event.position,
            envelope.at,
            self._settings.call_timeout,
        )

    def _put_aside(self, lane: Place, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        """Put aside what waits behind parked keys; return the others."""
        waiting = lane.parked.keys
        if not waiting:
            return events
        aside = [event for event in events if event.envelope.key in waiting]
        lane.parked.put_aside(aside, BEHIND)
        return [event for event in events if event.envelope.key not in waiting]

    def _try(self, lane: Place, event: LoggedEvent, once: Callable[[LoggedEvent], None]) -> None:
        """Try one event: it is applied or its key parked when this returns.

        Raises:
            Later: try again after a while; other lanes go on meanwhile.
            Unavailable: the backend is down.
            LeaseLost: the lane has another owner.
        """
        event_id = event.envelope.id
        if self._calls.is_poison(event_id):
            self._park(lane, event, HUNG, self._settings.attempts)
            return
        try:
            once(event)
        except LeaseLost:
            raise
        except BaseException as error:  # a provider that calls sys.exit() is only refusing
            self._failed(lane, event, error)
        else:
            self._calls.settled(event_id)

    def _failed(self, lane: Place, event: LoggedEvent, error: BaseException) -> None:
        in_hook = self._calls.interrupted()
        if not in_hook and isinstance(error, Transient | OSError):
            raise Unavailable(str(error)) from error  # opening or committing: not this event
        attempt = self._calls.tried(event.envelope.id)
        decision = decide(error, attempt, self._settings.attempts, self._calls.rng)
        if decision.action == "stop":
            raise LeaseLost(str(error)) from error
        if decision.action == "pause":
            self._calls.settled(event.envelope.id)
            raise error
        if decision.action == "retry":
            raise Later(decision.delay) from error
        self._park(lane, event, reason(error), attempt)

    def _park(self, lane: Place, event: LoggedEvent, why: str, attempt: int) -> None:
        _log.error(
            "provider %s: event %s is parked after %d tries: %s; later events of its key %r wait",
            self._provider.config.name,
            event.envelope.id,
            attempt,
            why,
            event.envelope.key,
        )
        lane.parked.put_aside([event], why, attempt)
        self._calls.settled(event.envelope.id)


class TransactionalApplier(Applier):
    """Effects, ledger and checkpoint commit together: once (G4), and only for the owner (G5)."""

    def __init__(self, provider: TransactionalProvider, settings: Settings, calls: Calls) -> None:
        """Bind the provider's hooks."""
        super().__init__(provider, settings, calls)
        self._store = provider

    def floor(self, partition: int) -> int:
        """Return the epoch beside the provider's own checkpoint."""
        known = self._store.progress(lane_name(partition))
        return known.epoch if known else 0

    def begin(self, lane: Place, checkpoint: Acquired) -> Progress:
        """The provider's own checkpoint holds; our epoch is written beside it at once (G5)."""
        name = lane_name(lane.partition)
        known = self._store.progress(name)
        # A fresh store begins at the log's beginning, wherever Redis thinks the lane is.
        entry, n = (known.entry, known.n) if known else (START, 0)
        claim = Progress(lane.epoch, entry, n)
        try:
            with self._store.transaction(Fence(name, lane.epoch)) as transaction:
                transaction.record((), claim)
        except StaleEpoch as error:
            raise LeaseLost(str(error)) from error
        return claim

    def apply(self, lane: Place, events: Sequence[LoggedEvent]) -> None:
        """Apply a chunk in one transaction; if it fails, one by one."""
        fence = Fence(lane_name(lane.partition), lane.epoch)
        mine = self._put_aside(lane, events)
        if self._calls.in_trouble(event.envelope.id for event in mine):
            self._one_by_one(lane, fence, events)
            return
        try:
            with self._store.transaction(fence) as transaction:
                self._apply_all(transaction, mine)
                transaction.record(
                    [event.envelope.id for event in mine], _progress(lane, events[-1].position)
                )
        except StaleEpoch as error:
            raise LeaseLost(str(error)) from error
        except (LeaseLost, Unavailable):
            self._calls.interrupted()
            raise
        except BaseException:
            self._calls.interrupted()
            self._one_by_one(lane, fence, events)

    def _apply_all(self, transaction: Transaction, events: Sequence[LoggedEvent]) -> None:
        done = set(transaction.applied([event.envelope.id for event in events]))
        poisoned = self._calls.has_poison()
        for event in events:
            if poisoned and self._calls.is_poison(event.envelope.id):
                raise RuntimeError(HUNG)  # one by one will park it
            if event.envelope.id not in done:
                self._call(event)
                done.add(event.envelope.id)  # it may stand in the log twice

    def _one_by_one(self, lane: Place, fence: Fence, events: Sequence[LoggedEvent]) -> None:
        for event in events:
            progress = _progress(lane, event.position)
            if event.envelope.key in lane.parked.keys:
                lane.parked.put_aside([event], BEHIND)
                continue

            def once(event: LoggedEvent, progress: Progress = progress) -> None:
                with self._store.transaction(fence) as transaction:
                    if not transaction.applied([event.envelope.id]):
                        self._call(event)
                    transaction.record([event.envelope.id], progress)

            self._try(lane, event, once)
        with self._store.transaction(fence) as transaction:
            transaction.record((), _progress(lane, events[-1].position))


class PlainApplier(Applier):
    """For ``keyed``, ``lookup`` and ``blind`` providers: the checkpoint is in Redis alone (G4).

    ``keyed`` gets whole chunks, since a repeated event is recognised. The others commit after
    every event, so that one crash leaves one event in doubt; ``lookup`` is asked for it.
    """

    def __init__(self, provider: MemoryProvider, settings: Settings, calls: Calls) -> None:
        """Bind the provider's hooks."""
        super().__init__(provider, settings, calls)
        self._once = self._ask_first if provider.delivery == "lookup" else self._call
        self._in_doubt: set[int] = set()
        if provider.delivery != "keyed" and provider.capabilities.handles:
            self.chunk = 1

    def begin(self, lane: Place, checkpoint: Acquired) -> Progress:
        """Go on at the checkpoint in Redis; the first event after it is in doubt."""
        self._in_doubt.add(lane.partition)
        return super().begin(lane, checkpoint)

    def apply(self, lane: Place, events: Sequence[LoggedEvent]) -> None:
        """Call the hooks in order; a failing key is parked, the others go on."""
        for event in events:
            lane.check(self._settings.call_timeout)
            if event.envelope.key in lane.parked.keys:
                lane.parked.put_aside([event], BEHIND)
            else:
                self._try(lane, event, self._once)

    def _ask_first(self, event: LoggedEvent) -> None:
        """Call the hook, unless an earlier try or owner may have and the backend has the event.

        A lane is in doubt from its beginning until a call returns: all that the backend knows
        until then was sent before, also when the log lost its tail and several come again.
        """
        partition = event.position.partition
        if not self._apply.handles(type(event.envelope.event)):
            return
        if partition in self._in_doubt and self._knows(event):
            return
        self._in_doubt.add(partition)  # until it returns: another try asks first
        self._call(event)
        self._in_doubt.discard(partition)

    def _park(self, lane: Place, event: LoggedEvent, why: str, attempt: int) -> None:
        super()._park(lane, event, why, attempt)
        self._in_doubt.discard(lane.partition)

    def _knows(self, event: LoggedEvent) -> bool:
        self._calls.begin(event.envelope.id)
        known = self._provider.knows(event.envelope.id, self._context(event))
        self._calls.end()
        return known


def applier_of(provider: MemoryProvider, settings: Settings, calls: Calls) -> Applier:
    """Return the applier for a provider's delivery class."""
    if isinstance(provider, TransactionalProvider):
        return TransactionalApplier(provider, settings, calls)
    return PlainApplier(provider, settings, calls)


def _progress(lane: Place, position: Position) -> Progress:
    return Progress(lane.epoch, position.entry, position.n)
