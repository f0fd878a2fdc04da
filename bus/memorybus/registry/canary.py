"""When a canary last came through every lane that it met."""

from redis import Redis

from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import Keys

_KEPT_MS = 30 * 86_400_000


def note_arrival(redis: Redis, keys: Keys, now_ms: int) -> None:
    """Note for a month that a canary has come through.

    Raises:
        LogError: it cannot be written.
    """
    ask_redis(lambda: redis.set(keys.canary, now_ms, px=_KEPT_MS), keys.canary)
