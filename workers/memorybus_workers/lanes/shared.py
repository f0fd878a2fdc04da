"""What the lanes of one instance share, made of what its worker has."""

from functools import partial

from memorybus.history.history import History
from memorybus.registry.lanes import LaneKeys
from redis import Redis

from memorybus_workers.lanes.answers import Answers
from memorybus_workers.lanes.context import Surroundings
from memorybus_workers.lanes.lane import Links
from memorybus_workers.lanes.pace import Pace, unfinished


def linked(name: str, redis: Redis, around: Surroundings) -> Links:
    """Return the links of an instance's lanes.

    Args:
        name: the instance's.
        redis: a connection of its own.
        around: see `Surroundings`.
    """
    lanes = LaneKeys(redis, around.settings)
    return Links(
        name,
        redis,
        History.of(redis, around.settings),
        around.leases,
        around.settings,
        around.crash,
        around.entries_read,
        Answers(redis, name, around),
        Pace(around.clock, around.plan.rate, partial(unfinished, lanes, name, around.plan)),
        around.plan,
    )
