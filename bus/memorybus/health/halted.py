"""Lanes that say that they stand still: for want of the archive, or since their turns fail."""

from collections.abc import Sequence
from typing import Any

from redis import Redis

from memorybus.health.alarms import Alarm
from memorybus.redis.keys import Keys, lane_name

FIELD = "halted"
"""Of a lane's hash: why it stands still."""

_REMEDY = (
    "if it names the archive, see: memorybus archive verify; put the segment back from a copy "
    "(memorybus archive import), or make the archive reachable. Else its worker's log has the "
    "whole error: mend what it names. The lane tries again every 30 s, and goes on by itself"
)


def halted(
    redis: Redis, keys: Keys, names: Sequence[str], partitions: Sequence[int]
) -> list[Alarm]:
    """Return an alarm for each lane that stands still. Raises what redis-py raises."""
    lanes = [(name, partition) for name in names for partition in partitions]
    with redis.pipeline(transaction=False) as pipe:
        for name, partition in lanes:
            pipe.hget(keys.lane(partition, name), FIELD)
        replies: list[Any] = pipe.execute(raise_on_error=False)
    return [
        Alarm(
            "lane_halted",
            "critical",
            f"{name}:{lane_name(partition)}",
            f"provider {name}, partition {lane_name(partition)} stands still: {reply.decode()}",
            _REMEDY,
        )
        for (name, partition), reply in zip(lanes, replies, strict=True)
        if isinstance(reply, bytes)
    ]
