"""Leases: exclusive, expiring ownership of lanes, with an epoch as fencing token (G5)."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import LeaseLost
from memorybus.redis import scripts
from memorybus.redis.cluster import group_by_slot
from memorybus.redis.connect import connect_redis, translate_redis_error
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import OwnedLane
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.calls.thread_activity import AbandonedCalls, ThreadActivity
from memorybus_workers.logs import RateLimitedWarning

_log = logging.getLogger("memorybus")
_MIN_RENEWAL_SECONDS = 0.02
_MAX_LEASES_PER_CALL = 100
"""The most leases that one script renews; meanwhile Redis does nothing else, for milliseconds."""


class Lease(msgspec.Struct):
    """How long this worker owns a lane."""

    lane: OwnedLane  # the lane, as it was when it was taken
    until: float  # monotonic seconds; after this time the lane may be another worker's
    lost: bool = False  # whether it is another worker's, or will not be renewed
    needed: list[float] = []  # the monotonic times until which long calls in progress need it

    @property
    def key(self) -> str:
        return self.lane.lease


class Leases:
    """The leases of one worker process, renewed by a thread of their own, whichever provider hangs.

    A lost lease is dropped, and expires. One that is given up while an abandoned call may still
    take effect is renewed until that call is over: meanwhile this worker can take the lane again,
    and no other worker can (G4).
    """

    def __init__(self, settings: Settings, clock: Clock, worker: str) -> None:
        self._settings = settings
        self._clock = clock
        self._worker = worker
        self._keys = Keys(settings.namespace)
        self._ms = round(settings.lease * 1000)
        self._spare = settings.lease - settings.call_timeout
        # calls that were given up and may still take effect
        self.abandoned_calls = AbandonedCalls(clock, settings.call_timeout)
        self._held: dict[str, Lease] = {}
        self._left: dict[str, Lease] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()
        self._prolonging = threading.Lock()
        self._unrenewed = RateLimitedWarning("leases cannot be renewed: %s", clock)
        self._stop = threading.Event()
        self._redis = connect_redis(settings, timeout=settings.lease / 3)
        self._thread = threading.Thread(target=self._run, name="memorybus-leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def acquire(self, redis: Redis, provider: str, partition: int, floor: int = 0) -> Lease | None:
        """Take a lane that is free, or was given up here, with an epoch above `floor`."""
        asked_at = self._clock.monotonic()
        floor = max(floor, self._epochs.get((provider, partition), 0))
        left = self._left.get(self._keys.lease(partition, provider))
        token = left.lane.token if left else ""
        where = (self._keys, partition, provider)
        call = scripts.acquire(*where, self._worker, self._ms, floor, token=token)
        lane = scripts.run(redis, call)
        if lane is None:
            return None
        lease = Lease(lane, until=asked_at + self._settings.lease)
        self._epochs[(provider, partition)] = lane.epoch
        with self._lock:
            self._held[lease.key] = lease
            self._left.pop(lease.key, None)
        return lease

    def check(self, lease: Lease, room: float = 0.0) -> None:
        if lease.lost or self._clock.monotonic() + room >= lease.until:
            self.drop(lease)
            raise LeaseLost(f"{lease.key} is lost, or has no time left for a call")

    @contextmanager
    def extended_for(self, lease: Lease, seconds: float) -> Iterator[None]:
        """Keep a lease long enough for a call of `seconds`, until the call has returned.

        A call that outlives its lease cannot be fenced (G5), so the lease must be long enough even
        if it cannot be renewed meanwhile. The price is that the lane of a worker that dies in such
        a call has no owner until the long lease expires.
        """
        needed = self._clock.monotonic() + seconds + self._spare
        lease.needed.append(needed)
        try:
            if lease.until < needed:
                with suppress(RedisError, OSError):  # `check` finds out whether the lease is enough
                    self._prolong([lease])
            self.check(lease, seconds)
            yield
        finally:
            lease.needed.remove(needed)

    def drop(self, lease: Lease) -> None:
        """Forget a lease that is, or may be, another worker's now."""
        lease.lost = True
        with self._lock:
            for held in (self._held, self._left):
                if held.get(lease.key) is lease:
                    del held[lease.key]

    def give_up(
        self, leases: Iterable[Lease], activities: Iterable[ThreadActivity] = ()
    ) -> list[Lease]:
        """Stop the work on lanes; return the leases without an abandoned call, to be released."""
        leases = list(leases)
        for lease in leases:
            self.drop(lease)
        for activity in activities:
            activity.abandoned = True
            self.abandoned_calls.note(activity)
        late = {lease.key: lease for lease in leases if self.abandoned_calls.has_pending(lease.key)}
        with self._lock:
            self._left.update(late)
        return [lease for lease in leases if lease.key not in late]

    def release(self, redis: Redis, leases: list[Lease]) -> None:
        for lease in leases:
            self.drop(lease)
        if leases:
            scripts.run_many(redis, [scripts.release(lease.lane) for lease in leases])

    def holds(self, provider: str, partition: int) -> bool:
        """Return whether this worker owns a lane, as far as it knows."""
        with self._lock:
            return self._keys.lease(partition, provider) in self._held | self._left

    def count(self) -> int:
        with self._lock:
            return len(self._held)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(self._settings.lease)
        self._redis.close()

    def _run(self) -> None:
        # Renew so often that a lease always has `call_timeout` left when a call begins (`check`).
        while not self._stop.wait(
            max(_MIN_RENEWAL_SECONDS, min(self._settings.lease / 3, self._spare / 2))
        ):
            try:
                self.renew()
            except (RedisError, OSError) as error:
                self._unrenewed.warn(translate_redis_error(error, "Redis"))
            except Exception:  # the thread must outlive any mistake
                _log.exception("leases cannot be renewed")

    def renew(self) -> None:
        self._release_landed()
        with self._lock:
            leases = [*self._held.values(), *self._left.values()]
        if leases:
            self._prolong(leases)

    def _prolong(self, leases: list[Lease]) -> None:
        with self._prolonging:  # a call that asks for less time must not come last
            now = self._clock.monotonic()
            held = {lease.key: lease for lease in leases}
            asked = {key: (lease.lane, self._length_ms(lease, now)) for key, lease in held.items()}
            groups = group_by_slot(self._redis, asked, _MAX_LEASES_PER_CALL)
            calls = [scripts.renew([asked[key] for key in group]) for group in groups]
            replies = scripts.run_many(self._redis, calls)
            for group, reply in zip(groups, replies, strict=True):
                for key, ours in _pair_replies(group, reply):
                    self._note_renewal(held[key], now + asked[key][1] / 1000, ours)

    def _note_renewal(self, lease: Lease, until: float, kept: bool | Exception) -> None:
        if isinstance(kept, Exception):
            self._unrenewed.warn(translate_redis_error(kept, lease.key))
        elif kept:
            lease.until = until
        else:
            self.drop(lease)

    def _length_ms(self, lease: Lease, now: float) -> int:
        needed = max(lease.needed[:], default=now) - now
        return max(self._ms, round(needed * 1000))

    def _release_landed(self) -> None:
        """Release the given-up leases whose abandoned calls are over."""
        with self._lock:
            left = list(self._left.values())
        over = [lease for lease in left if not self.abandoned_calls.has_pending(lease.key)]
        self.release(self._redis, over)


def _pair_replies(
    keys: Sequence[str], reply: Sequence[bool | Exception] | Exception
) -> Iterator[tuple[str, bool | Exception]]:
    """Pair each lease with the script's reply for it; if the script failed, with its error."""
    if isinstance(reply, Exception):
        return zip(keys, repeat(reply))
    return zip(keys, reply, strict=True)
