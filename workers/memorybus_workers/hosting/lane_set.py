"""Works in turn on the lanes that one provider instance owns in a worker."""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection

import msgspec
from memorybus.errors import ArchiveError, ForeignKey, LeaseLost, LogError, Unavailable
from memorybus.log.stream import check_log_id
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus_providers.base import TransactionalProvider
from redis.exceptions import RedisError

from memorybus_workers.apply.applier import Applier, OpenInstance
from memorybus_workers.apply.bulk import BulkApplier, takes_turns_in_bulk
from memorybus_workers.apply.parallel import ParallelApplier
from memorybus_workers.apply.serial import SerialApplier
from memorybus_workers.apply.transactional import TransactionalApplier
from memorybus_workers.calls.allowance import allowance_for
from memorybus_workers.calls.retry import raise_unless_lane_error
from memorybus_workers.dead_letters.redo import Redo
from memorybus_workers.lanes.halts import Halts
from memorybus_workers.lanes.lane import COMMIT_EVERY, Lane, LaneContext
from memorybus_workers.lanes.leases import Lease
from memorybus_workers.logs import bind_lane, bind_partition


def applier_for(instance: OpenInstance, wake: Callable[[], None]) -> Applier:
    """Return the applier of an instance; a ``blind`` provider gets no two calls at once (G4)."""
    provider = instance.provider
    if isinstance(provider, TransactionalProvider):
        return TransactionalApplier(instance, provider)
    if provider.capabilities.concurrent and provider.delivery in ("keyed", "lookup"):
        return ParallelApplier(instance, wake)
    if takes_turns_in_bulk(provider):
        return BulkApplier(instance)
    return SerialApplier(instance)


_log = logging.getLogger("memorybus")
ACQUIRE_RETRY_SECONDS = 0.5
"""Seconds after which the set tries again to acquire the lanes that it lacks."""

FULL_LOOK_SECONDS = 60.0
"""Seconds after which lanes are looked at without news: a lost announcement must not stop one.

The tail compares the ends of all partitions every few seconds, so that none should be lost.
"""

_REDO_EVERY = 10.0
"""Seconds between searches for operators' requests about dead letters, if none is announced."""

_CHECK_SECONDS = 1.0
"""Seconds after which a runner that is not woken checks its own state, without any I/O."""

FAILURES_BEFORE_REOPEN = 5
"""How many failures of the backend in a row close the instance and open it again."""

_RECONNECTING = "; reconnecting"
"""Stands behind a backend's last error while its instance is opened again."""

OWNERSHIP_CHECK_SECONDS = 1.0
"""Seconds after which ownership is checked, even if the lanes have more to do."""

_INFINITE = float("inf")


class LaneSet:
    """Acquires, works on and gives up lanes. Belongs to the provider's thread."""

    def __init__(
        self, instance: OpenInstance, stop: threading.Event, wake: Callable[[], None]
    ) -> None:
        context, worker = instance.context, instance.context.worker
        self.unfinished: set[int] = set()  # the partitions that are known to have more events
        self._context = context
        self._name = context.name
        self._crash = context.crash
        self._settings = worker.settings
        self._clock = worker.clock
        self._all_leases = worker.leases
        self._breaker = instance.breaker
        self._failing_events = instance.failing_events
        self._failures = instance.breaker.failures
        self._stop = stop
        self._lanes: dict[int, Lane] = {}
        self._taking: Lease | None = None
        self._foreign: set[int] = set()
        self._missing: list[int] = []
        self._redis = connect_redis(self._settings, single=True)
        self._shared = LaneContext.of(context, self._redis)
        self._pace = self._shared.pace
        keys = self._keys = Keys(self._settings.namespace)
        provider = context.role.provider
        limits = self._settings.provider_limits(provider)
        # bounds how many calls are made
        self.allowance = allowance_for(self._redis, keys, provider, limits, self._clock)
        # applies their events
        self.applier = applier_for(
            msgspec.structs.replace(instance, allowance=self.allowance), wake
        )
        self._redo = Redo(self._shared, self.applier)
        self._halts = Halts(self._redis, keys, self._name, self._clock)
        self._tried_at = self._redone_at = self._looked_at = -_INFINITE
        self._redo_more = False
        self._last = -1

    def leases(self) -> list[Lease]:
        taking = [self._taking] if self._taking else []
        return taking + [lane.lease for lane in list(self._lanes.values())]

    def look_at_all(self) -> None:
        self.unfinished.update(self._lanes)

    def retry_now(self) -> None:
        """Retry at once all that waits for another try: backend, failing events, halted lanes."""
        self._breaker.retry_now()
        self._failing_events.retry_now()
        self._halts.retry_now()
        for lane in self._lanes.values():
            lane.window.wake(_INFINITE)
        self.look_at_all()

    # -- ownership --------------------------------------------------------------------------------

    def balance(self, wanted: Collection[int]) -> None:
        """Give up unwanted lanes between batches; try now and then to acquire missing ones."""
        for partition, lane in list(self._lanes.items()):
            if lane.lease.lost:
                _log.info("%s is lost while it has nothing to do", bind_lane(lane))
                self._context.count_mishap("lost")
                self._let_go(partition)
            elif partition in wanted or lane.abandoned_calls.has_pending(lane.lease.key):
                self.applier.cancel_drain(lane)
            else:
                self._hand_over(partition)
        now = self._clock.monotonic()
        missing = self._halts.not_halted(p for p in sorted(wanted) if p not in self._lanes)
        soon = missing == self._missing and now < self._tried_at + ACQUIRE_RETRY_SECONDS
        if soon:
            return
        self._missing = missing
        for partition in missing:
            if not self._stop.is_set():
                self._acquire_one(partition)
        if missing:
            self._tried_at = now

    def _hand_over(self, partition: int) -> None:
        lane = bind_lane(self._lanes[partition])
        try:
            if not self.applier.drain(lane):
                return
        except (LeaseLost, Exception) as error:  # whatever went wrong, the next owner begins anew
            _log.info("%s: %s", lane, error)
        self._crash("lane.before_release")
        self._let_go(partition)

    def _acquire_one(self, partition: int) -> None:
        bind_partition(partition)
        try:
            floor = self.applier.newest_epoch(partition)
            lease = self._all_leases.acquire(self._redis, self._name, partition, floor)
            if lease is not None:
                self._begin_lane(partition, lease)
        except LeaseLost as lost:
            _log.info("%s", lost)
        except Exception as error:
            self._handle_lane_error(partition, error)

    def _begin_lane(self, partition: int, lease: Lease) -> None:
        self._taking = lease  # if this hangs from here on, the lease is released
        try:
            check_log_id(self._redis, self._keys, self._shared.log_id)
            lane = bind_lane(Lane(self._shared, lease))
            lane.begin(self.applier.begin(lane), self.applier.reach())
            if lane.n > lease.lane.n:
                lane.commit()  # Redis lost a checkpoint that the provider still has
        except BaseException:
            self._release(lease)
            raise
        finally:
            self._taking = None
        self._lanes[partition] = lane
        self.unfinished.add(partition)
        self._foreign.discard(partition)

    def _release(self, lease: Lease) -> None:
        with contextlib.suppress(RedisError, OSError):  # without Redis it expires
            self._all_leases.release(self._redis, [lease])

    def _let_go(self, partition: int) -> None:
        """Drop a lane that is given up or lost; if it has a call under way, its lease runs out."""
        lane = self._lanes.pop(partition)
        self._all_leases.give_up([lane.lease])
        self.applier.forget(lane)
        if self.applier.is_at_rest(lane):
            self._release(lane.lease)

    def _handle_lane_error(self, partition: int, error: Exception) -> None:
        """Halt a lane because of its own error: the others go on, and the error is logged once.

        The lane is given up, because its state may be wrong, unless it only waits for the archive.
        The next try begins at the checkpoint.
        """
        why = raise_unless_lane_error(error, self._name)
        if isinstance(why, ForeignKey):
            if partition not in self._foreign:
                _log.error("provider %s, partition %d: %s", self._name, partition, why)
            self._foreign.add(partition)
        else:
            self._halts.halt(partition, why)
        if partition not in self._lanes:
            return
        if isinstance(why, ArchiveError):
            self.unfinished.add(partition)
        else:
            self._let_go(partition)

    # -- working ----------------------------------------------------------------------------------

    def step(self, news: set[int], *, redo: bool = False) -> None:
        """Give each lane that may have work its turn; begin after the one with the last turn."""
        now = self._clock.monotonic()
        self._note_due(news, now)
        if self._breaker.failures - self._failures >= FAILURES_BEFORE_REOPEN:
            self._failures = self._breaker.failures
            raise Unavailable(f"{self._breaker.why.removesuffix(_RECONNECTING)}{_RECONNECTING}")
        if now < self._held_until:
            return
        self._pace.take_share(lane.ended for lane in self._lanes.values())
        due = sorted(
            self._halts.not_halted(self._due_partitions()), key=lambda p: (p <= self._last, p)
        )
        self.unfinished.difference_update(due)  # halted lanes get their turn later
        until = self._clock.monotonic() + OWNERSHIP_CHECK_SECONDS
        for index, partition in enumerate(due):
            if self._is_held_back(until):
                self.unfinished.update(due[index:])
                break
            self._last = partition
            if self._give_turn(partition) or self._clock.monotonic() < self._held_until:
                self.unfinished.add(partition)
        self._redo_dead_letters(now, redo)

    @property
    def _held_until(self) -> float:
        return max(self._breaker.until, self.allowance.until)

    def _note_due(self, news: set[int], now: float) -> None:
        self.unfinished |= self.applier.collect() | news
        self.unfinished |= {p for p, lane in self._lanes.items() if lane.window.next_at() <= now}
        if now >= self._looked_at + FULL_LOOK_SECONDS:
            self._looked_at = now
            self._shared.history.refresh()
            self.look_at_all()  # a lost announcement must not stop a lane

    def _is_held_back(self, until: float) -> bool:
        """Whether no lane gets a turn now: the time is up, or calls or reads have to wait."""
        now = self._clock.monotonic()
        over = now >= until or now < self._held_until or self._pace.seconds_to_wait() > 0
        return over or self._stop.is_set()

    def _give_turn(self, partition: int) -> bool:
        """Let a lane read, apply and commit; return whether it has more to do at once."""
        lane = bind_lane(self._lanes[partition])
        try:
            more = self.applier.work(lane)
        except LeaseLost as lost:
            _log.info("%s", lost)
            self._context.count_mishap("fenced" if lost.fenced else "lost")
            self._let_go(partition)
        except Exception as error:
            self._handle_lane_error(partition, error)
        else:
            self._halts.resume(partition)
            return more
        return False

    def _due_partitions(self) -> set[int]:
        if self.applier.has_room():
            ready = {p for p, lane in self._lanes.items() if lane.window.has_ready()}
            return (self.unfinished & self._lanes.keys()) | ready
        return self.unfinished & self._lanes.keys()

    def _redo_dead_letters(self, now: float, asked: bool) -> None:
        due = asked or self._redo_more or now >= self._redone_at + _REDO_EVERY
        if not (due and self._lanes):
            return
        try:
            more = self._redo.work(self._lanes)
        except Unavailable as error:
            _log.warning("provider %s: dead letters wait: %s", self._name, error)
            more = False
        except RedisError as error:
            raise translate_redis_error(error, self._name) from error
        self._redone_at = now
        self._redo_more = more

    def seconds_to_rest(self) -> float:
        """Return for how many seconds there is nothing to do unless new entries arrive."""
        now = self._clock.monotonic()
        if now < self._held_until:
            return min(ACQUIRE_RETRY_SECONDS, self._held_until - now)
        free = {p: self._lanes[p] for p in self._halts.not_halted(self._lanes)}
        if self.unfinished & free.keys() or self._redo_more:
            return min(ACQUIRE_RETRY_SECONDS, self._pace.seconds_to_wait())
        due = min((lane.window.next_at() for lane in free.values()), default=_INFINITE)
        if self.applier.dirty & set(free.values()):
            most = COMMIT_EVERY
        else:
            most = ACQUIRE_RETRY_SECONDS if self._missing else _CHECK_SECONDS
        return min(most, max(0.0, due - now))

    def leave(self) -> None:
        """Finish the calls in flight, and give up all lanes and the connection.

        A lane is not released if one of its calls is still in flight after its time limit. Its
        lease then expires; it is renewed only as long as that call may have an effect that would be
        repeated.
        """
        until = self._clock.monotonic() + self._settings.call_timeout
        try:
            with contextlib.suppress(RedisError, OSError, LogError):
                while self._lanes and self._clock.monotonic() < until:
                    self.applier.collect()
                    for partition in list(self._lanes):
                        self._hand_over(partition)
                    if self._lanes:
                        self._clock.sleep(COMMIT_EVERY)
        finally:
            mine = [lease for lease in self.leases() if not lease.lost]
            pool = self.applier.pool
            self._all_leases.give_up(mine, pool.activities() if pool else ())
            self.applier.stop()
            self._shared.history.close()
            self._redis.close()
