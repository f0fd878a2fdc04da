"""What Redis remembers of a producer: the last sequence it took, by partition."""

from redis import Redis

from memorybus.keys import Keys


def taken(redis: Redis, keys: Keys, partitions: int, producer: str) -> dict[int, int]:
    """Return the last sequence taken from a producer, by partition, in one round trip.

    A partition whose key is not ours is left out.

    Raises:
        redis.RedisError: no answer.
    """
    with redis.pipeline(transaction=False) as pipe:
        for partition in range(partitions):
            pipe.hget(keys.producers(partition), producer)
        replies = pipe.execute(raise_on_error=False)
    return {
        partition: int(reply or 0)
        for partition, reply in enumerate(replies)
        if not isinstance(reply, Exception)
    }


def forget(redis: Redis, keys: Keys, partitions: int, producer: str) -> None:
    """Remove a producer whose spool is discarded.

    Raises:
        redis.RedisError: no answer.
    """
    with redis.pipeline(transaction=False) as pipe:
        for partition in range(partitions):
            pipe.hdel(keys.producers(partition), producer)
        pipe.execute(raise_on_error=False)
