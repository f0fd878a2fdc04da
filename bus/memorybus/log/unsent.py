"""Counts the events in the spools of this host that Redis has not taken."""

from redis import Redis

from memorybus.config.settings import Settings
from memorybus.log.producers import read_taken_sequences
from memorybus.redis.keys import Keys
from memorybus.spool.files import inspect_spool
from memorybus.spool.note import SpoolStats


def count_unsent(settings: Settings, redis: Redis | None = None) -> SpoolStats:
    """Return how many events wait, their size, and when the oldest was spooled.

    Args:
        settings: says where the spools are.
        redis: the log's Redis, which knows what it has taken; without it every row counts.

    Raises:
        redis.RedisError: no answer.
    """
    keys = Keys(settings.namespace)
    found = [
        inspect_spool(
            path, read_taken_sequences(redis, keys, settings.partitions, path.stem) if redis else {}
        )
        for path in sorted(settings.spool_dir.glob("*.db"))
    ]
    return SpoolStats(
        sum(one.events for one in found),
        sum(one.size for one in found),
        min((one.oldest_at for one in found if one.oldest_at is not None), default=None),
    )
