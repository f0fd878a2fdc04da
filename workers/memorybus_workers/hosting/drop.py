"""Removes a dropped copy: its state, its lanes and its registration; the record goes last.

A copy is removed only when no worker serves it any more, so that nothing of it comes back. If a
worker dies before the end, another one finds the record and does the rest.
"""

import logging
from collections.abc import Callable, Collection, Sequence

from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Homes, delete_state, home_elsewhere
from memorybus.registry.instances import Instance, Instances
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.retry_requests import RetryRequests
from memorybus.registry.roster import Roster, WorkerInfo
from redis import Redis

_log = logging.getLogger("memorybus")


def remove_dropped(
    settings: Settings,
    redis: Redis,
    dropped: Sequence[Instance],
    running: Collection[str],
    alive: Sequence[WorkerInfo],
) -> None:
    """Remove the dropped copies that no worker serves, and whose state is not on another host.

    Args:
        dropped: the copies.
        running: the instances that this worker still runs.
        alive: the workers whose heartbeats are fresh, this one included.

    Raises:
        LogUnavailable: Redis is away.
        OSError: the state cannot be deleted; the record stays.
    """
    busy = set(running) | {name for worker in alive for name in worker.providers}
    homes = Homes(redis, Keys(settings.namespace)).all() if dropped else {}
    for one in dropped:
        lanes = LaneKeys(redis, settings)
        owned = any(lane.owned for lane in lanes.states(one.name))
        if (
            one.name not in busy
            and not owned
            and home_elsewhere(homes.get(one.name), settings) is None
        ):
            _remove(settings, redis, lanes, one)


def _remove(settings: Settings, redis: Redis, lanes: LaneKeys, one: Instance) -> None:
    """Remove a copy while its record exists: a worker that was suspended harms no later copy."""
    keys, name = Keys(settings.namespace), one.name
    instances = Instances(redis, keys)
    steps: tuple[Callable[[], object], ...] = (
        lambda: delete_state(settings, name),
        lambda: lanes.remove(name),
        lambda: Roster(redis, keys).forget(name),
        lambda: Homes(redis, keys).forget(name),
        lambda: RetryRequests(redis, keys).forget(name),
        lambda: instances.resume(name),
    )
    for step in steps:
        if instances.get(name) != one:
            return  # another worker was first, and another copy may have the name by now
        step()
    if instances.remove(name, one):
        _log.info("copy %s of %s is removed, with its state", name, one.provider)
