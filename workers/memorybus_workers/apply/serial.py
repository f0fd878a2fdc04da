"""Appliers that call their provider from one thread, an event after the other."""

from collections.abc import Iterable, Sequence

import msgspec
from memorybus.errors import ArchiveError, LeaseLost, Transient, Unavailable
from memorybus.events import Omitted
from memorybus.log.entry import LoggedEvent
from memorybus_providers.base import HookContext

from memorybus_workers.apply.applier import Applier
from memorybus_workers.apply.serving import Serving
from memorybus_workers.calls.log_fields import at_calls, of_event
from memorybus_workers.lanes.intake import runs_of, single
from memorybus_workers.lanes.lane import COMMIT_EVERY, Lane
from memorybus_workers.lanes.parking import BEHIND

_FIRST_CHUNK = 64

_BATCHES = 4
"""So many batches are applied between two commits at most: if the owner dies they go one by one."""

TURN = 0.25
"""Seconds after which a lane lets others have their turn, give or take one call."""


class Outcome(msgspec.Struct):
    """What became of a chunk.

    Attributes:
        left: numbers of the events that stay open.
        delays: their keys that failed, and when to try them again (monotonic).
        taken: False if the whole chunk has to be read again.
    """

    left: set[int]
    delays: dict[str, float]
    taken: bool = True


class SerialApplier(Applier):
    """For ``keyed``, ``lookup`` and ``blind`` providers: the checkpoint is in Redis alone (G4).

    ``keyed`` gets whole chunks, since a repeated event is recognised, and its lanes commit now and
    then while they have more to do. The others commit after every event, so that one crash leaves
    one event in doubt; ``lookup`` is asked for it.
    """

    def __init__(self, serving: Serving) -> None:
        """Bind the provider's hooks."""
        super().__init__(serving)
        provider = serving.provider
        each = provider.delivery in ("lookup", "blind") and provider.capabilities.handles
        self._largest = 1 if each else self._settings.batch
        self._chunk = min(self._largest, _FIRST_CHUNK)
        self._until = self._due = 0.0
        self._held = False

    def suspects(self, deaths: int) -> int:
        """Return all that may have been applied since a dead owner's last commit."""
        return super().suspects(deaths) * (1 if self._largest == 1 else _BATCHES)

    def advance(self, lane: Lane) -> bool:
        """Apply a batch, and more of them for a moment; commit."""
        end = self._due = self._clock.monotonic() + COMMIT_EVERY
        try:
            more = self._batch(lane)
            for _ in range(_BATCHES - 1):
                at = lane.window.read_n
                if not more or self._clock.monotonic() >= end:
                    break
                more = self._batch(lane)
                if lane.window.read_n == at:  # the end, or the pace waits: the next turn tells
                    more = more or not (self._held or self._is_paused())
                    break
        except ArchiveError:
            lane.commit()  # what was applied before
            raise
        lane.commit()
        return more

    def _batch(self, lane: Lane) -> bool:
        """Try again what is due, then read and apply a batch, for a turn's time at most."""
        lane.check()
        if self._is_paused():
            return False
        self._until = self._clock.monotonic() + TURN
        self._held = False
        more = self._retry(lane)
        if self._held:
            return False
        events = lane.read(self._settings.batch)
        for chunk in self._chunks(events, lane.chunk(self._chunk)):
            if self._is_paused() or not self._take(lane, chunk) or self._held:
                return False
            if self._is_over():
                return True
        return more or lane.more

    def _chunks(self, events: Sequence[LoggedEvent], size: int) -> Iterable[Sequence[LoggedEvent]]:
        """Part what was read; events that go alone are parted from those that need no call."""
        if not events:
            return ()
        if size == 1:
            handles = self._apply.handles
            runs = runs_of(events, lambda event: handles(type(event.envelope.event)))
            return (part for calls, run in runs for part in (single(run) if calls else (run,)))
        if len(events) <= size:
            return (events,)
        return (events[i : i + size] for i in range(0, len(events), size))

    def _calling(self, lane: Lane, events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        """Return the events that need a call, or have to be put aside."""
        if lane.parked.keys:
            return [e for e in events if type(e.envelope.event) is not Omitted]
        handles = self._apply.handles
        return [e for e in events if handles(type(e.envelope.event))]

    def drain(self, lane: Lane) -> bool:
        """Commit what a turn that failed left; only what was given up may be in flight."""
        lane.commit()
        return self.rests(lane)

    def _is_over(self) -> bool:
        return self._clock.monotonic() >= self._until

    def _retry(self, lane: Lane) -> bool:
        """Try the keys again whose time has come; return whether some are left to try at once."""
        window = lane.window
        fed = lane.catch_up()
        if fed:
            lane.commit()  # nothing more of that key may be all that was missing
        window.wake(self._clock.monotonic())
        for event in window.take(self._settings.batch):
            until = self._try(lane, event)
            if until:
                window.postpone(event, until)
            else:
                window.finish(event)
            lane.commit()
            if self._held or self._is_paused() or self._is_over():
                break
        return fed or window.has_ready() or window.hungry() is not None

    def _take(self, lane: Lane, chunk: Sequence[LoggedEvent]) -> bool:
        lane.crash("lane.before_apply")
        if self._lookup and not lane.window.idle:
            lane.commit(sent=chunk[-1].position.n)  # else a crash would doubt the lowest one only
        begun = self._clock.monotonic()
        outcome = self._apply_chunk(lane, chunk)
        if not outcome.taken:
            return False
        self._fit(self._clock.monotonic() - begun)
        lane.crash("lane.after_apply")
        lane.window.take_in(chunk, outcome.left)
        for key, until in outcome.delays.items():
            lane.window.delay(key, until)
        if self._largest == 1 or lane.careful or self._clock.monotonic() >= self._due:
            lane.commit()
            self._due = self._clock.monotonic() + COMMIT_EVERY
        return True

    def _fit(self, took: float) -> None:
        """Choose the next chunk's size, so that one takes a part of a turn."""
        if took > TURN / 2:
            self._chunk = max(1, self._chunk // 2)
        elif took < TURN / 8 and self._chunk < self._largest:
            self._chunk = min(self._largest, self._chunk * 2)

    def _apply_chunk(self, lane: Lane, events: Sequence[LoggedEvent]) -> Outcome:
        """Call the hooks in order; a failing key waits or is parked, the others go on."""
        outcome = Outcome(set(), {})
        simple = lane.window.idle
        calling = self._calling(lane, events)
        if simple and self._is_calm(lane):
            calling = self._all_well(lane, calling, outcome)
        for event in calling:
            if (outcome.delays or not simple) and self._waits(lane, event, outcome):
                continue
            self._leave(event, self._try(lane, event), outcome)
        return outcome

    def _is_calm(self, lane: Lane) -> bool:
        """Say whether nothing has to be looked at before or after a call."""
        uneasy = self._lookup or self._troubles or self._breaker.uneasy or not self.rests(lane)
        return not (uneasy or lane.careful or lane.parked.keys or self._limits)

    def _all_well(
        self, lane: Lane, events: Sequence[LoggedEvent], outcome: Outcome
    ) -> Sequence[LoggedEvent]:
        """Apply events until one fails, at the least cost for each; return what is behind it.

        Raises:
            LeaseLost: the lane has another owner.
        """
        at_calls(self._slot, events)
        begin, end, lease, sends = self._slot.begin, self._slot.end, lane.lease, self._sends(lane)
        hook_of, timeout = self._apply.hook_of, self._settings.call_timeout
        for index, event in enumerate(events):
            envelope = event.envelope
            event_id, what = envelope.id, envelope.event
            try:
                if begin(event_id, sends) + timeout >= lease.until or lease.lost:
                    lane.check(timeout)
                said = hook_of(type(what))(
                    what,
                    HookContext(
                        envelope.scope,
                        envelope.session,
                        event_id,
                        event.position,
                        envelope.at,
                        timeout,
                    ),
                )
                if said is not None:
                    end()
                    lane.answers.given(event, said)
            except LeaseLost:
                end()
                raise
            except BaseException as error:
                self._troubles.served += index
                self._leave(event, self._failed(lane, event, error), outcome)
                return events[index + 1 :]
        end()
        self._troubles.served += len(events)
        return ()

    def _leave(self, event: LoggedEvent, until: float, outcome: Outcome) -> None:
        """Note that an event stays open, if it is to be tried again."""
        if until:
            outcome.left.add(event.position.n)
            outcome.delays[event.envelope.key] = until

    def _waits(self, lane: Lane, event: LoggedEvent, outcome: Outcome) -> bool:
        """Say whether an event is not for now: it is done, or its key or its provider waits."""
        if lane.window.is_done(event.position.n):
            return True
        key = event.envelope.key
        waits = key in outcome.delays or key in lane.window.keys or self._is_paused()
        if waits:
            outcome.left.add(event.position.n)
        return waits

    @of_event
    def _try(self, lane: Lane, event: LoggedEvent) -> float:
        """Try one event; return when to try it again, 0.0 if it is applied or put aside.

        Raises:
            LeaseLost: the lane has another owner.
        """
        lane.check(self._settings.call_timeout)
        if event.envelope.key in lane.parked.keys:
            lane.parked.put_aside([event], BEHIND)
            return 0.0
        uneasy = lane.careful or bool(self._troubles) or not self.rests(lane)
        until = self._in_trouble(lane, event) if uneasy else None
        if until is not None:
            return until
        try:
            self._once(lane, event)
        except LeaseLost:
            raise
        except BaseException as error:  # a provider that calls sys.exit() is only refusing
            return self._failed(lane, event, error)
        if uneasy:
            self._survived(lane, event)
            self._troubles.settled(event.envelope.id)
        if self._breaker.uneasy and self._apply.handles(type(event.envelope.event)):
            self._breaker.succeeded()
        return 0.0

    def _failed(self, lane: Lane, event: LoggedEvent, error: BaseException) -> float:
        """Decide what becomes of an event whose try has failed; see `_try`."""
        if not self._slot.interrupted() and isinstance(error, Transient | OSError):
            error = Unavailable(str(error))  # opening or committing: not this event
        self._survived(lane, event)
        return self._judge(lane, event, error)

    def _in_trouble(self, lane: Lane, event: LoggedEvent) -> float | None:
        """Return what is decided already, None if the event is to be tried."""
        if self._parked_as_hung(lane, event):
            return 0.0
        event_id = event.envelope.id
        until = self._troubles.until(event_id) or lane.landings.until(lane.lease.key, event_id)
        if until:
            return until
        at = self._before_try(lane, event)
        self._held = bool(at)
        return at
