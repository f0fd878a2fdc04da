"""Lists provider instances as an operator sees them: kind, home, lanes and backlog."""

from collections.abc import Sequence
from contextlib import closing
from typing import Literal

import msgspec
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.health.finding import Check
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus
from memorybus.redis.keys import lane_name
from memorybus.registry.homes import Home, find_local_home, is_same_home
from memorybus.registry.instances import InstancePause, lasting_pause
from memorybus.registry.lanes import LaneState
from memorybus.registry.roster import ProviderInfo

from memorybus_console.operations.stores import Stores


class ListedProvider(msgspec.Struct, frozen=True):
    """A provider instance as ``memorybus provider ls`` lists it.

    Attributes:
        delivery: its delivery class (G4); None if no worker ever served it.
        placement: "local" or "shared"; None if no worker ever served it.
        home: where the state of its live instance lies; None if that is shared, or if no worker
            has claimed a home yet.
        here: whether the home is this data directory; None without a home.
        paused: why its lanes are paused; empty if they are not.
        live: the copy that serves agents in its place; empty if it serves them itself.
    """

    name: str
    kind: str
    delivery: str | None
    placement: str | None
    home: Home | None
    here: bool | None
    lanes: int
    lanes_owned: int
    backlog: int
    note: str = ""
    paused: str = ""
    live: str = ""


def list_instances(settings: Settings) -> list[ListedProvider]:
    """Return the instances that workers registered, then those that are only configured.

    Raises:
        ConfigError: the data directory's id cannot be read.
    """
    with Stores(settings) as stores:
        providers, homes = stores.roster.providers(), stores.homes.all()
    ours = find_local_home(settings)
    return [
        _describe_instance(
            settings,
            status,
            providers.get(status.name),
            homes.get(status.live or status.name),
            ours,
        )
        for status in read_status(settings).providers
    ]


def _describe_instance(
    settings: Settings,
    status: ProviderStatus,
    info: ProviderInfo | None,
    home: Home | None,
    ours: Home,
) -> ListedProvider:
    if info is not None and info.placement != "local":
        home = None  # left over from when it was local
    return ListedProvider(
        name=status.name,
        kind=info.kind if info else settings.provider_kind(status.name),
        delivery=info.delivery if info else None,
        placement=info.placement if info else None,
        home=home,
        here=None if home is None else is_same_home(home, ours),
        lanes=status.lanes,
        lanes_owned=status.lanes_owned,
        backlog=status.backlog,
        note=info.note if info else "",
        paused=status.paused,
        live=status.live,
    )


def describe_home(home: Home) -> str:
    """Return a home in words: its directory and its host."""
    return f"{home.path or 'an unknown directory'} on {home.host}"


def check_homes(providers: Sequence[ListedProvider]) -> Check:
    """Check that local providers whose state is on another host are served there."""
    away = [provider for provider in providers if provider.home is not None and not provider.here]
    if not away:
        return Check(name="homes", ok=True, found="all local state is on a host with a worker")
    listed = "; ".join(
        f"{provider.name} in {describe_home(provider.home)}" for provider in away if provider.home
    )
    unserved = [provider.name for provider in away if not provider.lanes_owned]
    if not unserved:
        return Check(name="homes", ok=True, found=f"served on the host of their state: {listed}")
    return Check(
        name="homes",
        ok=False,
        found=f"no worker serves {', '.join(unserved)} on the host of the state: {listed}",
        fix=f"start a worker there; or, if that place is gone or this one is its copy, see: "
        f"memorybus provider move {unserved[0]}",
    )


_LETTERS_PER_LANE = 3


LaneCondition = Literal["halted", "paused", "unowned", "behind", "current"]
"""Whether a lane is stopped, is paused, has no owner, lags behind, or has applied everything."""


class LaneView(msgspec.Struct, frozen=True):
    """A lane."""

    name: str  # its partition's name: `p07`
    condition: LaneCondition  # whether it advances; if not, why
    figures: LaneState


class LanesView(msgspec.Struct, frozen=True):
    """The lanes of an instance.

    Attributes:
        failing: some of its dead letters that were refused; those that wait behind them are not
            among them.
    """

    lanes: list[LaneView]
    pause: InstancePause | None  # the pause of the instance; None if it is not paused
    failing: list[LocatedLetter]


def view_lanes(settings: Settings, name: str, figures: list[LaneState]) -> LanesView:
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
    with closing(DeadLetters(settings)) as desk:
        first = desk.first_letters(name, _LETTERS_PER_LANE)
    return [letter for letter in first if letter.stored.letter.refused]
