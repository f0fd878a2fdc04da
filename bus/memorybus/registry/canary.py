"""Notes when a canary event last passed every lane that should get it."""

from redis import Redis

from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import Keys

_KEPT_MS = 30 * 86_400_000


def note_arrival(redis: Redis, keys: Keys, now_ms: int) -> None:
    """Note that a canary has passed every lane; the note is kept for a month."""
    ask_redis(lambda: redis.set(keys.canary, now_ms, px=_KEPT_MS), keys.canary)
