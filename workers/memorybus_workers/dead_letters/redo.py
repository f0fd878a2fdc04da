"""Carries out operators' requests about dead letters, as the owner of their lane (G5, G6).

A pass goes once through a lane's dead letters, in order, a slice at a time, so that the lane works
meanwhile. The process may end after any step. A letter is removed only after it was applied; if its
event is applied twice, the provider's delivery class says what that means (G4). A request is
removed only when its pass is over. A letter whose try killed the owner is not tried again for the
same request.
"""

import logging
from collections.abc import Iterable, Mapping

from memorybus.dead_letters.queue import LetterEvent, published_event
from memorybus.dead_letters.records import (
    Amendment,
    DeadLetter,
    LetterBox,
    LetterRequest,
    LetterRequests,
    StoredLetter,
)
from memorybus.errors import ForeignKey, InvalidEvent, LeaseLost, Unavailable
from memorybus.log.entry import LoggedEvent
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.wire.codec import Encoder
from redis.exceptions import RedisError

from memorybus_workers.apply.applier import Applier
from memorybus_workers.calls.retry import describe_failure, raise_unless_lane_error
from memorybus_workers.dead_letters.decide import (
    LEAVE,
    Pass,
    amendment_for_refusal,
    apply_edit,
    build_resolution,
    take_disjoint,
    with_edit,
)
from memorybus_workers.lanes.lane import Lane, LaneContext
from memorybus_workers.lanes.parking import Failure
from memorybus_workers.logs import bind_lane, unbind_lane

_log = logging.getLogger("memorybus")
SLICE_SECONDS = 0.25
"""Seconds that one `Redo.work` takes, plus at most one call of the provider per lane."""

PAGE = 200
DEADLY_REASON = "it ended its worker when it was retried"
_BEHIND_CHECKPOINT = 0.2
_AFTER_A_FAILURE = 30.0


class Redo:
    """Carries out requests for the lanes of one provider instance. Belongs to its thread."""

    def __init__(self, shared: LaneContext, applier: Applier) -> None:
        instance = shared.instance
        self._redis = shared.redis
        self._keys = Keys(instance.worker.settings.namespace)
        self._provider = instance.name
        self._applier = applier
        self._history = shared.history
        self._clock = instance.worker.clock
        self._crash = instance.crash
        self._encoder = Encoder(0)
        self._requests = LetterRequests(self._redis, self._keys, self._provider)
        self._passes: dict[int, Pass] = {}
        self._unreadable: set[str] = set()
        self._is_foreign = False

    def work(self, lanes: Mapping[int, Lane]) -> bool:
        """Work on the requests for about `SLICE_SECONDS`; return whether there is more to do."""
        unbind_lane()
        waiting = self._read_waiting()
        self._unreadable &= waiting.keys()
        self._passes = {p: way for p, way in self._passes.items() if _belongs_to(way, lanes.get(p))}
        for partition in sorted(set(waiting.values()) & lanes.keys() - self._passes.keys()):
            self._begin_pass(lanes[partition], [f for f, p in waiting.items() if p == partition])
        share = SLICE_SECONDS / max(1, len(self._passes))
        for partition in sorted(self._passes):
            self._continue_pass(lanes[partition], share)
        now = self._clock.monotonic()
        return any(way.not_before <= now for way in self._passes.values())

    def _read_waiting(self) -> dict[str, int]:
        """Return the waiting requests; none if their key is not ours, which is logged once."""
        try:
            waiting = self._requests.waiting_fields()
        except RedisError as error:
            key = self._keys.redo(self._provider)
            foreign = translate_redis_error(error, key)
            if not isinstance(foreign, ForeignKey):
                raise
            if not self._is_foreign:
                _log.error("provider %s: dead letters wait: %s", self._provider, foreign)
            self._is_foreign = True
            return {}
        self._is_foreign = False
        return waiting

    def _begin_pass(self, lane: Lane, fields: Iterable[str]) -> None:
        """Begin a pass for the requests that this release can read; a newer one reads the rest."""
        new = sorted(set(fields) - self._unreadable)
        requests = self._requests.read(new)
        self._unreadable.update(f for f, r in zip(new, requests, strict=True) if r is None)
        readable = [request for request in requests if request is not None]
        if readable:
            self._passes[lane.partition] = Pass(
                lane.epoch, take_disjoint(readable), lane.parked.worker
            )

    def _continue_pass(self, lane: Lane, share: float) -> None:
        way = self._passes[bind_lane(lane).partition]
        now = self._clock.monotonic()
        if way.not_before > now:
            return
        try:
            lane.check()
            lane.commit()
            self._applier.pin_checkpoint(lane)
            if self._walk_letters(lane, way, now + share):
                self._finish_pass(lane, way)
        except LeaseLost as lost:
            _log.info("%s", lost)
            del self._passes[lane.partition]
        except Exception as error:
            why = raise_unless_lane_error(error, self._provider)
            _log.error("%s: its dead letters wait: %s", lane, describe_failure(why), exc_info=why)
            way.not_before = self._clock.monotonic() + _AFTER_A_FAILURE

    def _walk_letters(self, lane: Lane, way: Pass, until: float) -> bool:
        """Go through letters until the time is over; return whether all were handled."""
        box = LetterBox(self._redis, self._keys, lane.partition, self._provider)
        while page := box.page(way.cursor, PAGE):
            for stored in page:
                self._handle_letter(lane, way, stored)
                way.cursor = stored.id
                if self._clock.monotonic() >= until:
                    return False
        if way.rewind():
            way.not_before = self._clock.monotonic() + _BEHIND_CHECKPOINT
            return False
        return True

    def _finish_pass(self, lane: Lane, way: Pass) -> None:
        self._crash("redo.before_done")
        self._requests.remove(way.fields)
        del self._passes[lane.partition]
        counts = ", ".join(f"{count} {what}" for what, count in way.counts.items())
        name, partition = self._provider, lane.partition
        _log.info(
            "provider %s, partition %d: dead letters: %s", name, partition, counts or "none left"
        )

    def _handle_letter(self, lane: Lane, way: Pass, stored: StoredLetter) -> None:
        act = way.decide(stored.letter)
        if act is LEAVE:
            return
        if stored.letter.n > lane.window.n:
            # The lane may read its event once more, and must then find its key parked.
            way.postpone(stored.letter)
            return
        logged = published_event(self._history, lane.partition, stored.letter)
        if act.discard is not None:
            lane.parked.settle(stored, self._resolution(act.discard, stored.letter, logged.event))
            way.counts["discarded"] += 1
        if act.edit is not None:
            stored = self._edit_letter(lane, way, stored, act.edit, logged.event)
        if act.apply:
            self._apply_letter(lane, way, stored, logged)
        self._crash("redo.after_settle")

    def _edit_letter(
        self,
        lane: Lane,
        way: Pass,
        stored: StoredLetter,
        request: LetterRequest,
        event: LoggedEvent | None,
    ) -> StoredLetter:
        new = with_edit(stored, request)
        if new is not stored and new.amendment is not None:
            lane.parked.amend(
                stored, new.amendment, self._resolution(request, stored.letter, event)
            )
            way.counts["edited"] += 1
        return new

    def _resolution(
        self, request: LetterRequest, letter: DeadLetter, event: LoggedEvent | None
    ) -> bytes:
        return self._encoder.envelope(build_resolution(self._provider, request, letter, event))

    def _apply_letter(
        self, lane: Lane, way: Pass, stored: StoredLetter, logged: LetterEvent
    ) -> None:
        if stored.strange:
            way.note_left(stored.letter)
            way.counts["not readable by this release"] += 1
            return
        self._crash("redo.before_apply")
        failure = self._try_letter(lane, way, stored, logged)
        self._crash("redo.after_apply")
        if failure is None:
            lane.parked.settle(stored)
            way.counts["applied"] += 1
        else:
            lane.parked.amend(
                stored, amendment_for_refusal(stored, lane.parked.mask_and_bound(failure))
            )
            way.note_left(stored.letter)
            way.counts["refused again"] += 1

    def _try_letter(
        self, lane: Lane, way: Pass, stored: StoredLetter, logged: LetterEvent
    ) -> Failure | None:
        if logged.event is None:
            return self._failure(logged.why)
        try:
            wanted = apply_edit(logged.event, stored.amendment)
        except InvalidEvent as error:
            return self._failure(f"the edited event: {error}")
        try:
            return self._applier.apply_dead_letter(
                lane, wanted, lambda: self._note_try(lane, way, stored)
            )
        except Unavailable:
            if way.end_try(stored):
                lane.parked.amend(stored, stored.amendment or Amendment())
            raise

    def _note_try(self, lane: Lane, way: Pass, stored: StoredLetter) -> Failure | None:
        """Note that a letter is about to be applied; refuse it if a try killed an earlier owner."""
        if way.is_deadly(stored):
            return self._failure(DEADLY_REASON)
        lane.parked.amend(stored, way.begin_try(stored))
        return None

    def _failure(self, why: str) -> Failure:
        now = self._clock.now_ms()
        return Failure(why, first_at=now, last_at=now)


def _belongs_to(way: Pass, lane: Lane | None) -> bool:
    """Return whether a pass was begun under the epoch in which the lane is owned now."""
    return lane is not None and lane.epoch == way.epoch
