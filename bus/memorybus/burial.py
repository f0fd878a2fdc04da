"""What becomes of a dead worker's lanes, when who started its process has seen it end.

Others only hear that a worker is silent, and must wait for its leases to run out: it may be cut off
and still at work. Its parent knows better.
"""

import logging
from collections.abc import Mapping

from redis import Redis
from redis.exceptions import RedisError

from memorybus import scripts
from memorybus.errors import MemoryBusError
from memorybus.keys import Keys
from memorybus.links import connect_redis
from memorybus.roster import ProviderInfo, Roster
from memorybus.settings import Settings

_log = logging.getLogger("memorybus")

_TIMEOUT = 1.0
"""Seconds for each reply of Redis: who buries has other workers to look after."""

_ENDS_WITH_ITS_CALLER = ("transactional", "keyed")
"""Delivery classes (G4) of which a call that outlives its process does no harm."""


def bury(settings: Settings, worker: str) -> None:
    """Let others take a dead worker's lanes at once, and have the roster forget it.

    Only where the provider is ``transactional`` (a transaction ends with its process) or ``keyed``
    (what arrives late is recognised). To a ``lookup`` or ``blind`` backend the dead process may
    have sent a request that is still under way, which a new owner would neither find nor stop: its
    lease is what waits for that (G3, G4). A lane that another worker has by now is left alone (G5).
    Without Redis nothing happens: the leases expire.

    Args:
        settings: where the log is.
        worker: its id; its process must have been reaped.
    """
    redis = connect_redis(settings, timeout=_TIMEOUT)
    try:
        freed = _buried(redis, settings, worker)
    except (MemoryBusError, RedisError, OSError) as error:
        _log.warning("the lanes of %s wait for their leases' end: %s", worker, error)
    else:
        _log.info("%s is dead: %d of its lanes are free at once", worker, freed)
    finally:
        redis.close()


def _buried(redis: Redis, settings: Settings, worker: str) -> int:
    keys = Keys(settings.namespace)
    roster = Roster(redis, keys)
    calls = [
        scripts.bury(keys, partition, name, worker)
        for name in sorted(freed_at_once(roster.instances()))
        for partition in range(settings.partitions)
    ]
    replies = scripts.run_many(redis, calls)
    roster.leave(worker)
    return sum(reply == 1 for reply in replies)


def freed_at_once(providers: Mapping[str, ProviderInfo]) -> set[str]:
    """Return the instances whose lanes need not wait for a dead owner's lease (pure)."""
    return {name for name, info in providers.items() if info.delivery in _ENDS_WITH_ITS_CALLER}
