"""A provider's lanes one by one, as operators look at them; it changes nothing."""

import msgspec

from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.health.providers import LaneFigures
from memorybus.operations.stores import Stores
from memorybus.redis.keys import lane_name
from memorybus.registry.lanes import LaneOwner
from memorybus.registry.pauses import InstancePause, lasting_pause

_EACH = 3
"""Dead letters that are looked at in each lane."""


class LaneLine(msgspec.Struct, frozen=True):
    """A lane.

    Attributes:
        name: its partition's: ``p07``.
        state: "stands still", "paused", "no owner", "behind" or "up to date".
        figures: how far it is.
        owner: who works on it.
    """

    name: str
    state: str
    figures: LaneFigures
    owner: LaneOwner


class LanesView(msgspec.Struct, frozen=True):
    """The lanes of an instance.

    Attributes:
        lanes: by partition.
        hold: why they stand still on somebody's word; None if they do not.
        failing: some of its dead letters: those that were refused, not those behind them.
    """

    lanes: list[LaneLine]
    hold: InstancePause | None
    failing: list[LocatedLetter]


def lanes_of(settings: Settings, name: str, figures: list[LaneFigures]) -> LanesView:
    """Look at the lanes of an instance.

    Args:
        settings: where the log is.
        name: the instance.
        figures: of its lanes by partition, from a look.

    Raises:
        LogUnavailable: Redis is away.
    """
    with Stores(settings) as stores:
        owners = stores.lanes.owners(name)
        hold = lasting_pause(stores.instances.pauses().get(name))
    lanes = [
        LaneLine(lane_name(p), state(lane, held=hold is not None), lane, owner)
        for p, (lane, owner) in enumerate(zip(figures, owners, strict=True))
    ]
    refused = _refused(settings, name) if any(one.parked_keys for one in figures) else []
    return LanesView(lanes, hold, refused)


def state(lane: LaneFigures, *, held: bool) -> str:
    """Return in a word how a lane does; pure."""
    if lane.halted:
        return "stands still"
    if held:
        return "paused"
    if not lane.owned:
        return "no owner"
    return "behind" if lane.backlog else "up to date"


def _refused(settings: Settings, name: str) -> list[LocatedLetter]:
    letters = DeadLetters(settings)
    try:
        found = letters.first_letters(name, _EACH)
    finally:
        letters.close()
    return [one for one in found if one.stored.letter.refused]
