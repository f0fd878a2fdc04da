"""Removes single entries from the log that nobody may read any more.

Only what the archive has sealed may be missing from the log (G7): an entry that is not sealed yet
stays until the next call. Redis only marks a deleted entry, and frees its memory when some hundred
neighbours are deleted, too. So after a removal all sealed entries of the partition are trimmed.
The append-only file has the removed entries until it is rewritten.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.log.entry import LoggedEvent, parse_entry_id
from memorybus.log.stream import START, EventLog
from memorybus.redis.cluster import group_by_shard
from memorybus.redis.connect import ask_redis, connect_redis
from memorybus.redis.keys import Keys

_PAGE = 500


class Removed(msgspec.Struct, frozen=True):
    """How many of the entries that should go were removed."""

    gone: int = 0  # how many were removed
    unsealed: int = 0  # how many stay, because they are not in the archive yet


def remove_entries(
    log: EventLog, settings: Settings, goes: Callable[[LoggedEvent], bool]
) -> Removed:
    keys, gone, unsealed = Keys(settings.namespace), 0, 0
    for partition in range(settings.partitions):
        state, stream = keys.state(partition), keys.log(partition)
        sealed = int(ask_redis(partial(log.redis.hget, state, "sealed"), state) or 0)
        positions = [event.position for event in _all_events(log, partition) if goes(event)]
        entries = [place.entry for place in positions if place.n <= sealed]
        unsealed += len(positions) - len(entries)
        for page in (entries[at : at + _PAGE] for at in range(0, len(entries), _PAGE)):
            gone += int(ask_redis(partial(log.redis.xdel, stream, *page), stream))
        if entries:
            _trim(log, state, stream)
    return Removed(gone, unsealed)


def _trim(log: EventLog, state: str, stream: str) -> None:
    raw = ask_redis(partial(log.redis.hget, state, "sealed_entry"), state)
    if isinstance(raw, bytes):
        milliseconds, number = parse_entry_id(raw.decode())
        first = f"{milliseconds}-{number + 1}"
        ask_redis(partial(log.redis.xtrim, stream, minid=first, approximate=False), stream)


def _all_events(log: EventLog, partition: int) -> Iterator[LoggedEvent]:
    place = START
    while page := log.read(partition, place, _PAGE):
        yield from page
        place = page[-1].position.entry


_LOOK_EVERY = 0.1  # seconds between two looks whether Redis is done


def rewrite_redis_files(settings: Settings, wait: float, clock: Clock) -> list[str]:
    """Have each Redis of the log rewrite its append-only file, and wait at most `wait` seconds."""
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
