"""A dropped copy goes: its state, its lanes and what is known of it, the record last.

It goes only when nobody works on it any more, so that nothing of it comes back; and step by step,
so that whoever dies on the way leaves the record, and the next one does the rest.
"""

import logging
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from memorybus.homes import Home, Homes, found_here, is_same
from memorybus.instances import Instance, Instances, check_name
from memorybus.keys import Keys
from memorybus.lanes import LaneKeys
from memorybus.roster import Roster, WorkerInfo
from memorybus.settings import Settings
from redis import Redis

_log = logging.getLogger("memorybus")


def clear(
    settings: Settings,
    redis: Redis,
    dropped: Sequence[Instance],
    running: Collection[str],
    alive: Sequence[WorkerInfo],
) -> None:
    """Remove those dropped copies that nobody works on, and whose state is not elsewhere.

    Args:
        settings: see `Settings`.
        redis: the log's Redis.
        dropped: the copies.
        running: what this worker still runs.
        alive: the workers that were heard of lately, this one included.

    Raises:
        LogUnavailable: Redis is away.
        OSError: the state cannot be deleted; the record stays.
    """
    busy = set(running) | {name for worker in alive for name in worker.providers}
    homes = Homes(redis, Keys(settings.namespace)).all() if dropped else {}
    for one in dropped:
        lanes = LaneKeys(redis, settings)
        owned = any(lane.owned for lane in lanes.states(one.name))
        if one.name not in busy and not owned and _is_here(settings, homes.get(one.name)):
            _remove(settings, redis, lanes, one)


def _is_here(settings: Settings, home: Home | None) -> bool:
    return home is None or is_same(home, found_here(settings))


def _remove(settings: Settings, redis: Redis, lanes: LaneKeys, one: Instance) -> None:
    keys = Keys(settings.namespace)
    delete_state(settings, one.name)
    lanes.remove(one.name)
    Roster(redis, keys).forget(one.name)
    Homes(redis, keys).forget(one.name)
    instances = Instances(redis, keys)
    instances.let_go(one.name)
    instances.remove(one.name)
    _log.info("copy %s of %s is removed, with its state", one.name, one.provider)


def delete_state(settings: Settings, name: str) -> None:
    """Delete an instance's directory: below ``data_dir/providers`` only, and through no link.

    Raises:
        ConfigError: the name is none.
        OSError: it cannot be deleted.
    """
    home: Path = settings.provider_home(check_name(name))
    if home.is_symlink():
        home.unlink()  # what it points to is not ours
    elif home.exists():
        shutil.rmtree(home)  # which follows no link either
