"""What Redis remembers of a producer: the last sequence it took, by partition."""

from collections.abc import Mapping

from redis import Redis

from memorybus.errors import SpoolCorrupt
from memorybus.keys import Keys
from memorybus.spool import Spool


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


def check_unused(spool: Spool, taken: Mapping[int, int]) -> None:
    """Let a spool give no sequence that Redis has already; a row with one of them needs another.

    A power cut may take the last rows of the file; if the clock was set back since, those that
    came later have their sequences, and Redis would take them for resends.

    Raises:
        SpoolCorrupt: there are such rows; they can go on as another producer's.
    """
    spool.give_above(max(taken.values(), default=0))
    for partition, last in taken.items():
        handed = spool.handed.upto(partition)
        if last > handed and any(row[0] <= last for row in spool.after(handed, 1, 0, partition)):
            raise SpoolCorrupt(f"{spool.path}: lost rows whose numbers came again")
