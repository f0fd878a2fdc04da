"""``memorybus provider move``: makes this data directory the home of a local provider."""

from collections.abc import Iterator
from difflib import get_close_matches

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LanesOwned
from memorybus.registry.homes import Home, find_local_home, is_same_home, local_home

from memorybus_console.operations.providers.inventory import (
    ListedProvider,
    describe_home,
    list_instances,
)
from memorybus_console.operations.stores import Stores
from memorybus_console.result import Remark, Result


class Move(Result, frozen=True, rename={"origin": "from", "target": "to"}):
    """What a move changes.

    Attributes:
        delivery: its delivery class, which decides where its lanes continue without its state.
        origin: its home now; None if it has none.
        needed: whether anything moves; false if all homes are here already.
        state: the directory here in which the state of its live instance must lie.
        lanes_owned: how many lanes of it and of its copies live workers own.
        bare: those of these instances, except the live one, that have lanes but no state here.
    """

    provider: str
    delivery: str | None
    origin: Home | None
    target: Home
    needed: bool
    state: str
    state_found: bool
    lanes_owned: int
    workers: list[str]
    along: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    executed: bool = False

    def headline(self) -> str:
        """Return from where to where it moves."""
        if not self.needed:
            return f"{self.provider} already has its home here"
        return describe_move(self)

    def notes(self) -> Iterator[Remark]:
        """Yield what becomes of its state, and why it must wait."""
        if self.needed:
            yield Remark(describe_consequence(self), "yellow")
        if not self.executed and (obstacle := describe_obstacle(self)):
            yield Remark(obstacle, "yellow")

    def is_plan(self) -> bool:
        """Return whether it is still to be moved."""
        return self.needed and not self.executed


def plan_move(settings: Settings, name: str) -> Move:
    """Return what moving a provider here would change, with all its copies; change nothing.

    Args:
        settings: the settings of this host, with its data directory.

    Raises:
        ConfigError: the instance is unknown, or it is shared and so has no home.
    """
    with Stores(settings) as stores:
        records, homes, ours = stores.instances.all(), stores.homes.all(), find_local_home(settings)
        provider = records[name].provider if name in records else name
        listed = _find_local_provider(settings, provider)
        copies = [
            record for record in records.values() if record.provider == provider and record.is_copy
        ]
        along = tuple(copy.name for copy in copies if not copy.dropped)
        every = (provider, *along)
        live = listed.live or provider
        return Move(
            provider=provider,
            delivery=listed.delivery,
            origin=listed.home,
            target=ours,
            needed=any(one not in homes or not is_same_home(homes[one], ours) for one in every),
            state=str(settings.provider_home(live)),
            state_found=_has_state(settings, live),
            lanes_owned=sum(lane.owned for one in every for lane in stores.lanes.states(one)),
            workers=[w.id for w in stores.roster.alive() if {*every} & {*w.providers}],
            along=along,
            bare=tuple(
                one
                for one in every
                if one != live
                and stores.lanes.count_remaining(one)
                and not _has_state(settings, one)
            ),
        )


def _has_state(settings: Settings, name: str) -> bool:
    state = settings.provider_home(name)
    return state.is_dir() and any(state.iterdir())


def _find_local_provider(settings: Settings, name: str) -> ListedProvider:
    providers = {provider.name: provider for provider in list_instances(settings)}
    if name not in providers:
        near = get_close_matches(name, providers, n=1, cutoff=0.0)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"no provider instance {name!r} is known{hint}")
    if providers[name].placement == "shared":
        raise ConfigError(f"{name} is shared: any worker reaches its state, so it has no home")
    return providers[name]


def describe_obstacle(move: Move) -> str:
    """Return why a move must wait, with the remedy; "" if it need not; pure."""
    if not (move.needed and move.lanes_owned):
        return ""
    return (
        f"{move.lanes_owned} lanes of {move.provider} are owned by live workers; stop these first: "
        f"{', '.join(move.workers) or 'they have no heartbeat; their leases expire soon'}. With "
        f"--force they give the lanes up, and what they apply until then stays behind"
    )


def describe_consequence(move: Move) -> str:
    """Return, in words, what becomes of the provider's state; pure."""
    if move.bare:
        rest = msgspec.structs.replace(move, bare=())
        return (
            f"{describe_consequence(rest)}. Nothing lies here of {', '.join(move.bare)}, which "
            f"move with it"
        )
    if move.state_found:
        return (
            f"Nothing is copied: what lies in {move.state} is taken for the state. It should have "
            f"been copied when no worker of its old home ran"
        )
    fresh = f"Nothing is copied, and nothing lies in {move.state}: "
    if move.delivery == "transactional":
        return fresh + "its lanes start again from the log's beginning, into a fresh store here"
    return fresh + "its lanes continue where they are, and what was applied before stays behind"


def carry_out(settings: Settings, move: Move, *, force: bool) -> Move:
    """Make this data directory the home of the provider and of all its copies.

    Args:
        settings: the settings of this host, with its data directory.
        force: whether to do so even while live workers own lanes.

    Raises:
        LanesOwned: live workers own lanes, and `force` is false.
        ConfigError: the id of the data directory cannot be written.
    """
    obstacle = describe_obstacle(move)
    if obstacle and not force:
        raise LanesOwned(obstacle)
    home = local_home(settings)
    with Stores(settings) as stores:
        for name in (*move.along, move.provider):
            stores.homes.move(name, home)
    return msgspec.structs.replace(move, target=home, executed=True)


def describe_move(move: Move) -> str:
    """Return the move in words; pure."""
    origin = describe_home(move.origin) if move.origin else "no home yet"
    along = f" with {', '.join(move.along)}" if move.along else ""
    return f"{move.provider}{along}: from {origin} to {describe_home(move.target)}"
