"""A lock in Redis that one holder has at a time, and that expires if the holder is killed."""

from redis import Redis

from memorybus.redis import scripts
from memorybus.redis.connect import ask_redis


class ExpiringLock:
    """An entry with its holder's name. Raises `LogError` without Redis.

    Args:
        holder: no other holder has this name.
        life_ms: how many milliseconds the lock lasts after `take` or `prolong`.
    """

    def __init__(self, redis: Redis, key: str, holder: bytes, life_ms: int) -> None:
        self._redis = redis
        self._key = key
        self._holder = holder
        self._life_ms = life_ms

    def take(self) -> bool:
        """Take it; return False if somebody has it."""
        return bool(
            ask_redis(
                lambda: self._redis.set(self._key, self._holder, nx=True, px=self._life_ms),
                self._key,
            )
        )

    def prolong(self, more_ms: int = 0) -> bool:
        """Let it last anew, and so much longer; return False if it is not ours any more."""
        return self._expire_in(self._life_ms + more_ms)

    def keep(self) -> bool:
        """Take or prolong it; return False if another holder has it."""
        return self.take() or self.prolong()

    def holds(self) -> bool:
        """Return whether nobody else can have had it since it was taken."""
        return self.holder() == self._holder

    def holder(self) -> bytes | None:
        """Return who has it now."""
        holder: bytes | None = ask_redis(lambda: self._redis.get(self._key), self._key)
        return holder

    def end(self) -> None:
        """Let it go."""
        self._expire_in(0)

    def _expire_in(self, life_ms: int) -> bool:
        call = scripts.prolong_lock(self._key, self._holder, life_ms)
        return bool(ask_redis(lambda: scripts.run(self._redis, call), self._key))
