"""What operators asked of dead letters, carried out by the owner of their lane (G5, G6).

A pass goes once through a lane's dead letters, in order, a slice at a time, so that the lane goes
on meanwhile. Every step may be the last: a letter is applied and then goes, and an event applied
again counts as its provider's class says (G4); the request goes when its pass is over.
"""

import logging
from collections.abc import Iterable, Mapping

from memorybus.clock import Clock
from memorybus.codec import Encoder
from memorybus.dead_letters import Box, DeadLetter, Stored
from memorybus.errors import ForeignKey, InvalidEvent, LeaseLost
from memorybus.keys import Keys
from memorybus.links import translated
from memorybus.logged import LoggedEvent
from memorybus.redo import Request, Requests
from memorybus.testing import CrashPoint, no_crash
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.applier import Applier
from memorybus_workers.deadletter import Failure
from memorybus_workers.lane import Lane
from memorybus_workers.redo_pass import (
    LEAVE,
    Pass,
    as_edited,
    edited,
    refused,
    told,
)

_log = logging.getLogger("memorybus")

SLICE = 0.25
"""Seconds of one `Redo.work`, give or take one call of the provider."""

PAGE = 200
GONE = "the log has the event no more"
_BEHIND_CHECKPOINT = 0.2


class Redo:
    """Carries out requests for the lanes of one provider instance. Belongs to its thread."""

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        provider: str,
        *,
        applier: Applier,
        clock: Clock,
        crash: CrashPoint = no_crash,
    ) -> None:
        """Know of no request yet.

        Args:
            redis: made by `links.connect_redis`.
            keys: of the namespace.
            provider: the instance's name.
            applier: its `again` applies one event.
            clock: time.
            crash: passes ``redo.before_apply``, ``redo.after_apply``, ``redo.after_settle`` and
                ``redo.before_done``.
        """
        self._redis = redis
        self._keys = keys
        self._provider = provider
        self._applier = applier
        self._clock = clock
        self._crash = crash
        self._encoder = Encoder(0)
        self._requests = Requests(redis, keys, provider)
        self._passes: dict[int, Pass] = {}
        self._unreadable: set[str] = set()
        self._is_foreign = False

    def work(self, lanes: Mapping[int, Lane]) -> bool:
        """Go on with what was asked, for `SLICE` seconds at most; return whether there is more.

        A lane that turns out to be lost is left to its own next step. One round trip if nothing
        was asked.

        Raises:
            Unavailable: the backend is down; nothing is lost by it.
            redis.RedisError: Redis is away.
        """
        waiting = self._asked()
        self._unreadable &= waiting.keys()
        self._passes = {p: way for p, way in self._passes.items() if _is_same(way, lanes.get(p))}
        for partition in sorted(set(waiting.values()) & lanes.keys() - self._passes.keys()):
            self._begin(lanes[partition], [f for f, p in waiting.items() if p == partition])
        share = SLICE / max(1, len(self._passes))
        for partition in sorted(self._passes):
            self._go_on(lanes[partition], share)
        now = self._clock.monotonic()
        return any(way.not_before <= now for way in self._passes.values())

    def _asked(self) -> dict[str, int]:
        """Return the requests that wait; none if their key is somebody else's, which is told once.

        Raises:
            redis.RedisError: Redis is away.
        """
        try:
            waiting = self._requests.waiting()
        except RedisError as error:
            key = self._keys.redo(self._provider)
            foreign = translated(error, key)
            if not isinstance(foreign, ForeignKey):
                raise
            if not self._is_foreign:
                _log.error("provider %s: dead letters wait: %s", self._provider, foreign)
            self._is_foreign = True
            return {}
        self._is_foreign = False
        return waiting

    def _begin(self, lane: Lane, fields: Iterable[str]) -> None:
        """Begin a pass for what this release can read; the rest is for a newer one."""
        new = sorted(set(fields) - self._unreadable)
        requests = self._requests.read(new)
        self._unreadable.update(f for f, r in zip(new, requests, strict=True) if r is None)
        known = [request for request in requests if request is not None]
        if known:
            self._passes[lane.partition] = Pass(lane.epoch, known)

    def _go_on(self, lane: Lane, share: float) -> None:
        way = self._passes[lane.partition]
        now = self._clock.monotonic()
        if way.not_before > now:
            return
        try:
            lane.check()
            lane.commit()
            self._applier.pin(lane)
            if self._walk(lane, way, now + share):
                self._done(lane, way)
        except LeaseLost as lost:
            _log.info("%s", lost)
            del self._passes[lane.partition]

    def _walk(self, lane: Lane, way: Pass, until: float) -> bool:
        """Go through letters until the time is up; return whether the last one is done with."""
        box = Box(self._redis, self._keys, lane.partition, self._provider)
        while page := box.page(way.cursor, PAGE):
            for stored in page:
                if not self._take(lane, way, box, stored):
                    return False
                way.cursor = stored.id
                if self._clock.monotonic() >= until:
                    return False
        return True

    def _done(self, lane: Lane, way: Pass) -> None:
        self._crash("redo.before_done")
        self._requests.carried_out(way.fields)
        del self._passes[lane.partition]
        counts = ", ".join(f"{count} {what}" for what, count in way.counts.items())
        name, partition = self._provider, lane.partition
        _log.info(
            "provider %s, partition %d: dead letters: %s", name, partition, counts or "none left"
        )

    def _take(self, lane: Lane, way: Pass, box: Box, stored: Stored) -> bool:
        """Do what is asked of one letter; return False if that must wait."""
        act = way.decide(stored.letter)
        if act is LEAVE:
            return True
        if stored.letter.n > lane.window.n:
            # The lane may read it once more, and must find its key parked then.
            way.not_before = self._clock.monotonic() + _BEHIND_CHECKPOINT
            return False
        event = box.event(stored.letter)
        if act.discard is not None:
            lane.parked.settle(stored, self._told(act.discard, stored.letter, event))
            way.counts["discarded"] += 1
        if act.edit is not None:
            stored = self._edit(lane, way, stored, act.edit, event)
        if act.apply:
            self._apply(lane, way, stored, event)
        self._crash("redo.after_settle")
        return True

    def _edit(
        self, lane: Lane, way: Pass, stored: Stored, request: Request, event: LoggedEvent | None
    ) -> Stored:
        new = edited(stored, request)
        if new is not stored and new.amendment is not None:
            lane.parked.amend(stored, new.amendment, self._told(request, stored.letter, event))
            way.counts["edited"] += 1
        return new

    def _told(self, request: Request, letter: DeadLetter, event: LoggedEvent | None) -> bytes:
        return self._encoder.envelope(told(self._provider, request, letter, event))

    def _apply(self, lane: Lane, way: Pass, stored: Stored, event: LoggedEvent | None) -> None:
        self._crash("redo.before_apply")
        failure = self._again(lane, stored, event)
        self._crash("redo.after_apply")
        if failure is None:
            lane.parked.settle(stored)
            way.counts["applied"] += 1
        else:
            lane.parked.amend(stored, refused(stored, failure))
            way.left(stored.letter)
            way.counts["refused again"] += 1

    def _again(self, lane: Lane, stored: Stored, event: LoggedEvent | None) -> Failure | None:
        now = self._clock.now_ms()
        if event is None:
            return Failure(GONE, first_at=now, last_at=now)
        try:
            wanted = as_edited(event, stored.amendment)
        except InvalidEvent as error:
            return Failure(f"the edited event: {error}", first_at=now, last_at=now)
        return self._applier.again(lane, wanted)


def _is_same(way: Pass, lane: Lane | None) -> bool:
    """Say whether a pass belongs to a lane as it is owned now."""
    return lane is not None and lane.epoch == way.epoch
