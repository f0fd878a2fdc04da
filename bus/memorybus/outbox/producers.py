"""Reads and changes what Redis remembers of a producer: the last sequence taken, by partition."""

import logging
from collections.abc import Mapping

from redis import Redis

from memorybus.config.settings import Settings
from memorybus.errors import ForeignKey, SpoolCorrupt
from memorybus.outbox.files import inspect_spool
from memorybus.outbox.spool import Spool, spooled_at
from memorybus.receipt import SpoolStats
from memorybus.redis import scripts
from memorybus.redis.connect import translate_redis_error
from memorybus.redis.keys import Keys

_log = logging.getLogger("memorybus")


def read_taken_sequences(
    redis: Redis, keys: Keys, partitions: int, producer: str
) -> dict[int, int]:
    with redis.pipeline(transaction=False) as pipe:
        for partition in range(partitions):
            pipe.hget(keys.producers(partition), producer)
        replies = pipe.execute(raise_on_error=False)
    return {
        partition: int(reply or 0)
        for partition, reply in enumerate(replies)
        if not _is_foreign(reply, keys.producers(partition))
    }


def _is_foreign(reply: object, key: str) -> bool:
    if not isinstance(reply, Exception):
        return False
    if not isinstance(translate_redis_error(reply, key), ForeignKey):
        raise reply
    return True


def note_rest(
    redis: Redis, keys: Keys, lasts: Mapping[int, int], producer: str, window: float
) -> None:
    """Note that a producer has deleted all events that Redis took from it."""
    window_ms = round(window * 1000)
    calls = [
        scripts.note_idle_producer(keys, at, producer, last, window_ms)
        for at, last in lasts.items()
    ]
    scripts.run_many(redis, calls)


def may_be_forgotten(last: int, had: int, now_ms: int, window: float) -> bool:
    """Return whether Redis may have forgotten an idle producer, rather than lost its tail."""
    return last == 0 and now_ms - spooled_at(had) > window * 1000


def forget_producer(redis: Redis, keys: Keys, partitions: int, producer: str) -> None:
    scripts.run_many(
        redis, [scripts.forget_producer(keys, at, producer) for at in range(partitions)]
    )


def log_loss(partition: int, last: int, deleted: int, producer: str) -> None:
    _log.error(
        "partition %d: Redis lost events of sequence %d to %d of %s after they were deleted here; "
        "restore its backup, or replay from the archive",
        partition,
        last + 1,
        deleted,
        producer,
    )


def check_unused(spool: Spool, taken: Mapping[int, int]) -> None:
    """Let a spool use only sequences that Redis has not seen (else `SpoolCorrupt`).

    A power cut may take the last rows of the file. If the clock was set back since, later rows have
    the same sequences, and Redis would take them for resends.
    """
    spool.start_above(max(taken.values(), default=0))
    for partition, last in taken.items():
        sent = spool.possibly_delivered.upto(partition)
        if last > sent and any(row[0] <= last for row in spool.rows_after(sent, 1, 0, partition)):
            raise SpoolCorrupt(f"{spool.path}: lost rows whose numbers came again")


def count_unsent(settings: Settings, redis: Redis | None = None) -> SpoolStats:
    keys = Keys(settings.namespace)
    spools = [
        inspect_spool(
            path, read_taken_sequences(redis, keys, settings.partitions, path.stem) if redis else {}
        )
        for path in sorted(settings.spool_dir.glob("*.db"))
    ]
    return SpoolStats(
        sum(spool.events for spool in spools),
        sum(spool.size for spool in spools),
        min((spool.oldest_at for spool in spools if spool.oldest_at is not None), default=None),
    )
