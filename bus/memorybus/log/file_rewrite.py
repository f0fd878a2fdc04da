"""Has Redis rewrite its append-only file, in which what was deleted stays until then."""

from contextlib import closing

from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.redis.cluster import group_by_shard
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

_LOOK_EVERY = 0.1
"""Seconds between two looks whether Redis is done."""


def rewrite_redis_files(settings: Settings, wait: float, clock: Clock) -> list[str]:
    """Have each Redis of the log rewrite its append-only file, and wait at most `wait` seconds.

    Returns:
        What remains, in words that say what to do about it.
    """
    logs = map(Keys(settings.namespace).log, range(settings.partitions))
    until = clock.monotonic() + wait
    try:
        with closing(connect_redis(settings)) as redis:
            shards = group_by_shard(redis, logs)
            return [why for shard in shards if (why := _rewrite(shard.redis, until, clock))]
    except (RedisError, OSError) as error:
        return [f"Redis's append-only file ({error}): redis-cli bgrewriteaof"]


def _rewrite(redis: Redis, until: float, clock: Clock) -> str:
    """Ask for a rewrite as soon as none is under way, and await its end; return what remains."""
    asked = False
    while clock.monotonic() < until:
        info = redis.info("persistence")
        if not info.get("aof_enabled"):
            return ""
        if info.get("aof_rewrite_in_progress") or info.get("aof_rewrite_scheduled"):
            clock.sleep(_LOOK_EVERY)
        elif not asked:
            redis.bgrewriteaof()
            asked = True
        elif info.get("aof_last_bgrewrite_status") == "ok":
            return ""
        else:
            return "Redis's append-only file, whose rewrite failed (see Redis's log): bgrewriteaof"
    return "Redis's append-only file, which is still being rewritten: run this again"
