"""The lock of whoever derives from a provider's facts, or keeps all others from it."""

from contextlib import suppress

from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from redis import Redis, RedisError


class DerivingLock:
    """Held by one holder at a time; it expires if the holder is killed.

    Args:
        holder: its id; no other holder has it.
        seconds: how long it lasts after `keep`.
    """

    def __init__(
        self, redis: Redis, settings: Settings, provider: str, holder: str, seconds: float
    ) -> None:
        self._redis, self._holder = redis, holder.encode()
        self._key = Keys(settings.namespace).deriving(provider)
        self._ms = round(seconds * 1_000)

    def keep(self) -> bool:
        """Take or prolong it; return False if another holder has it."""
        if self._redis.set(self._key, self._holder, nx=True, px=self._ms):
            return True
        return self.holds() and bool(self._redis.pexpire(self._key, self._ms))

    def holds(self) -> bool:
        """Return whether nobody else can have had it since `keep`."""
        return bool(self._redis.get(self._key) == self._holder)

    def end(self) -> None:
        """Let it go."""
        with suppress(RedisError):  # then it expires
            if self.holds():
                self._redis.delete(self._key)
