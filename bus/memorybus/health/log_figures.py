"""Reads the figures of the log: events published, events held, duplicates."""

from collections.abc import Mapping

import msgspec
from redis import Redis

from memorybus.health.providers import reply_number
from memorybus.log.entry import entry_ms
from memorybus.log.inspection import PartitionState
from memorybus.redis.keys import Keys
from memorybus.text.display import iso


class LogFigures(msgspec.Struct, frozen=True):
    """The log of all partitions; times are ISO 8601, UTC.

    Attributes:
        published: how many events ever entered the log.
        entries: how many of these Redis holds.
        bytes: the memory that these take.
        oldest_at: when the oldest of these entered the log, which is trimmed before it; null for
            none.
        duplicates: how many events came again and were skipped (G2).
        conflicts: how many events came again with another payload; the first one counts.
    """

    published: int = 0
    entries: int = 0
    bytes: int = 0
    oldest_at: str | None = None
    duplicates: int = 0
    conflicts: int = 0


def read_figures(redis: Redis, keys: Keys, states: Mapping[int, PartitionState]) -> LogFigures:
    """Return the figures of the partitions that were just read.

    Raises:
        redis.RedisError: Redis is away.
    """
    with redis.pipeline(transaction=False) as pipe:
        for partition in states:
            pipe.hmget(keys.state(partition), "duplicates", "conflicts")
        replies = pipe.execute(raise_on_error=False)
    pairs = [reply if isinstance(reply, list) else (None, None) for reply in replies]
    views = [state.view for state in states.values()]
    firsts = [entry_ms(view.first.entry) for view in views if view.first]
    return LogFigures(
        published=sum(view.n for view in views),
        entries=sum(view.length for view in views),
        bytes=sum(state.size for state in states.values()),
        oldest_at=iso(min(firsts, default=None)),
        duplicates=sum(reply_number(pair[0]) for pair in pairs),
        conflicts=sum(reply_number(pair[1]) for pair in pairs),
    )
