"""Bounds how many calls an instance makes, and what else it spends, over all workers (G10)."""

from typing import Protocol

from memorybus.clock import Clock
from memorybus.config.settings import CallLimits
from memorybus.errors import Unavailable
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from redis import Redis, RedisError

ASK_AGAIN = 5.0  # seconds after which Redis is asked again, even if the day lasts longer


class Allowance(Protocol):
    """Says whether a call may be made now. Belongs to one thread."""

    until: float  # the monotonic time before which no call is allowed
    why: str  # why calls wait for longer than a moment; "" if they do not
    bounded: bool  # whether there is any bound

    def take(self) -> bool:
        """Use one call; return whether it may be made now. If not, `until` is when to ask again."""
        ...


class Unbounded:
    """Allows everything."""

    until = 0.0
    why = ""
    bounded = False

    def take(self) -> bool:
        return True


class SharedAllowance:
    """Asks Redis, which counts for all workers. `limits`: the bounds for a second and for a day."""

    bounded = True

    def __init__(
        self, redis: Redis, keys: Keys, provider: str, limits: CallLimits, clock: Clock
    ) -> None:
        self.until = 0.0
        self.why = ""
        self._redis = redis
        self._limits = limits
        self._clock = clock
        self._call = scripts.spend(
            keys.budget(provider), limits.calls_per_second, limits.daily_budget
        )

    def take(self) -> bool:
        wait = scripts.run(self._redis, self._call)
        spent = wait.spent_today
        self.why = (
            f"its {self._limits.daily_budget} calls of this day (UTC) are made" if spent else ""
        )
        self.until = self._clock.monotonic() + min(wait.seconds, ASK_AGAIN) if wait.seconds else 0.0
        return not wait.seconds


def allowance_for(
    redis: Redis, keys: Keys, provider: str, limits: CallLimits, clock: Clock
) -> Allowance:
    if not (limits.calls_per_second or limits.daily_budget):
        return Unbounded()
    return SharedAllowance(redis, keys, provider, limits, clock)


class SharedSpending:
    """Counts uses in Redis, for `ProviderConfig.spend`. May be called from several threads."""

    def __init__(self, redis: Redis, keys: Keys, provider: str) -> None:
        self._redis, self._keys, self._provider = redis, keys, provider

    def __call__(self, what: str, a_day: int) -> bool:
        """Count one use; return whether the limit of this day (UTC) allowed it."""
        if a_day <= 0:
            return False
        call = scripts.spend(self._keys.spent(self._provider, what), 0, a_day)
        try:
            return not scripts.run(self._redis, call).seconds
        except RedisError as error:
            raise Unavailable(
                f"the call limit of {self._provider} cannot be read: {error}"
            ) from error
