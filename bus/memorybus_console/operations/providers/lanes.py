"""Shows the lanes of a provider's instance one by one; it changes nothing."""

from typing import Literal

import msgspec
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.redis.keys import lane_name
from memorybus.registry.instances import InstancePause, lasting_pause
from memorybus.registry.lanes import LaneState

from memorybus_console.operations.stores import Stores

_LETTERS_PER_LANE = 3


LaneCondition = Literal["halted", "paused", "unowned", "behind", "current"]
"""Whether a lane is stopped, is paused, has no owner, lags behind, or has applied everything."""


class LaneView(msgspec.Struct, frozen=True):
    """A lane.

    Attributes:
        name: its partition's name: ``p07``.
        condition: whether it advances; if not, why.
    """

    name: str
    condition: LaneCondition
    figures: LaneState


class LanesView(msgspec.Struct, frozen=True):
    """The lanes of an instance.

    Attributes:
        pause: the pause of the instance; None if it is not paused.
        failing: some of its dead letters that were refused; those that wait behind them are not
            among them.
    """

    lanes: list[LaneView]
    pause: InstancePause | None
    failing: list[LocatedLetter]


def view_lanes(settings: Settings, name: str, figures: list[LaneState]) -> LanesView:
    """Return the lanes of an instance."""
    with Stores(settings) as stores:
        pause = lasting_pause(stores.instances.pauses().get(name))
    lanes = [
        LaneView(lane_name(p), lane_condition(lane, paused=pause is not None), lane)
        for p, lane in enumerate(figures)
    ]
    refused = _refused_letters(settings, name) if any(lane.parked_keys for lane in figures) else []
    return LanesView(lanes, pause, refused)


def lane_condition(lane: LaneState, *, paused: bool) -> LaneCondition:
    """Return whether a lane advances, or why not; pure."""
    if lane.halted:
        return "halted"
    if paused:
        return "paused"
    if not lane.owned:
        return "unowned"
    return "behind" if lane.backlog else "current"


def _refused_letters(settings: Settings, name: str) -> list[LocatedLetter]:
    letters = DeadLetters(settings)
    try:
        first = letters.first_letters(name, _LETTERS_PER_LANE)
    finally:
        letters.close()
    return [letter for letter in first if letter.stored.letter.refused]
