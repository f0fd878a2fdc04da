"""Lets a recall wait, for a limited time, for the events that its session published before."""

from collections.abc import Mapping

from memorybus.clock import Clock
from memorybus.concurrency.backoff import look_pause
from memorybus.redis.keys import Keys
from redis import Redis

_STALL_SHARE = 0.25
"""After this share of the wait without progress, the recall does not wait any longer."""

_RESPITE_SECONDS = 2.0
"""Seconds for which no recall waits for such a provider, so that other sessions get answers."""


class ReadYourWrites:
    """Waits for a provider's lanes. Belongs to one thread.

    Args:
        keys: the keys of the namespace.
        longest: how long a recall may wait, in seconds.
        most: if more events than this are missing, a recall does not wait; None for no limit.
    """

    def __init__(
        self, redis: Redis, keys: Keys, longest: float, clock: Clock, most: int | None = None
    ) -> None:
        self._most = most
        self._redis = redis
        self._keys = keys
        self._longest = longest
        self._clock = clock
        self._unwaited_until: dict[str, float] = {}

    def wait(self, provider: str, positions: Mapping[int, int]) -> bool:
        """Wait until dense numbers, by partition, are applied, or waiting is not worth the time.

        Returns:
            Whether they are applied.
        """
        now = began = self._clock.monotonic()
        missing = self._missing(provider, positions)
        if not missing or now < self._unwaited_until.get(provider, 0.0):
            return not missing
        deadline, before = now + self._longest, 0
        stalled = now + self._longest * _STALL_SHARE
        while missing and now < min(deadline, stalled):
            if self._most is not None and missing > self._most:
                return False
            if missing != before:  # there is progress, so more waiting is worth it
                before, stalled = missing, now + self._longest * _STALL_SHARE
            self._clock.sleep(look_pause(now - began))
            now = self._clock.monotonic()
            missing = self._missing(provider, positions)
        if missing and now >= stalled:
            self._unwaited_until[provider] = now + _RESPITE_SECONDS
        return not missing

    def _missing(self, provider: str, positions: Mapping[int, int]) -> int:
        """Return how many of the wanted events are not applied yet."""
        if not positions:
            return 0
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in positions:
                pipe.hget(self._keys.lane(partition, provider), "n")
            applied = [int(n or 0) for n in pipe.execute()]
        return sum(max(0, w - n) for n, w in zip(applied, positions.values(), strict=True))
