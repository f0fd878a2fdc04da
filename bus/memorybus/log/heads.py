"""Reads the last numbers of some partitions, for readers that wait for their own writes."""

from collections.abc import Iterable

from redis import Redis

from memorybus.redis.keys import Keys


def read_head_numbers(redis: Redis, keys: Keys, partitions: Iterable[int]) -> dict[int, int]:
    """Return the dense numbers that some partitions have reached, in one round trip."""
    wanted = tuple(partitions)
    with redis.pipeline(transaction=False) as pipe:
        for partition in wanted:
            pipe.hget(keys.state(partition), "n")
        numbers = pipe.execute()
    return {p: int(n) for p, n in zip(wanted, numbers, strict=True) if n}
