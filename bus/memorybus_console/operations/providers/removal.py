"""``memorybus provider remove|move``: takes an instance out of Redis, or to another directory."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LanesOwned, MemoryBusError
from memorybus.registry.homes import (
    Home,
    delete_state,
    find_local_home,
    home_elsewhere,
    is_same_home,
    local_home,
)
from memorybus.registry.instances import Instance, InstancePause, live_name

from memorybus_console.operations.copies.replay import LOOK_EVERY
from memorybus_console.operations.providers.inventory import (
    ListedProvider,
    describe_home,
    list_instances,
)
from memorybus_console.operations.providers.setup import describe_block
from memorybus_console.operations.stores import Stores, check_instance
from memorybus_console.result import Remark, Result

_LANE_WAIT_SECONDS = 20.0
"""Seconds to wait until workers give up the lanes of an instance that is removed."""


class Removal(Result, frozen=True):
    """An instance that could be removed.

    Attributes:
        block: what to delete from the settings before; "" if they do not name the instance.
        lanes: how many lanes it has of which Redis holds anything.
        state: the directory of its state here; None if the state is shared or lies elsewhere.
        generation: its live generation, which is removed with it; "" if it is live itself.
        elsewhere: where its state is, in words, if that is not here.
    """

    name: str
    block: str
    lanes: int
    parked: int
    workers: list[str]
    state: str | None
    delete_state: bool
    generation: str = ""
    elsewhere: str = ""
    executed: bool = False

    def headline(self) -> str:
        first = f"first {self.block}\n" if self.block else ""
        verb = "removed" if self.executed else "would remove"
        parked = f", {self.parked} parked events" if self.parked else ""
        along = f" with {self.generation}, which serves it" if self.generation else ""
        state = self.state or self.elsewhere
        kept = f"\nits state {self._state_verb()}: {state}" if state else ""
        return f"{first}{verb} {self.name}{along}: {self.lanes} lanes in Redis{parked}{kept}"

    def _state_verb(self) -> str:
        if not self.delete_state:
            return "stays"
        return "is deleted" if self.executed else "would be deleted"

    def notes(self) -> Iterator[Remark]:
        if self.executed and self.workers:
            verb = "fail to recall from it" if self.generation else "recall from it"
            yield Remark(
                f"these workers are set to serve it, and {verb} until they are restarted: "
                f"{', '.join(self.workers)}",
                "yellow",
            )

    def is_plan(self) -> bool:
        return not self.executed

    @property
    def names(self) -> list[str]:
        """The instance, and then its live generation if it has one."""
        return [self.name, self.generation] if self.generation else [self.name]


def plan_removal(stores: Stores, name: str, *, delete_state: bool) -> Removal:
    """Return what removing an instance would do; change nothing.

    Raises:
        ConfigError: it is unknown, copies of it must be dropped first, or its state is to be
            deleted but lies elsewhere.
        LanesOwned: its state is to be deleted while workers use it.
    """
    live = live_name(check_name(name), stores.instances.live())
    _check_no_copies(stores, name, live)
    names = {name, live}
    lanes = sum(map(stores.lanes.count_remaining, names))
    path = stores.settings.provider_home(live)
    place = _describe_elsewhere(stores, live)
    state = str(path) if path.exists() and not place else None
    if not (lanes or state or name in stores.instances.pauses()):
        check_instance(stores, name)
    workers = [worker.id for worker in stores.roster.alive() if names & {*worker.providers}]
    if delete_state:
        _check_deletable(name, workers, place)
    return Removal(
        name=name,
        block=describe_block(stores.settings, name),
        lanes=lanes,
        parked=sum(lane.parked for each in names for lane in stores.lanes.states(each)),
        workers=workers,
        state=state,
        delete_state=delete_state,
        generation="" if live == name else live,
        elsewhere=place,
    )


def _check_deletable(name: str, workers: list[str], place: str) -> None:
    """Make sure that no worker uses a state that is to be deleted, and that it lies here."""
    if workers:
        raise LanesOwned(
            f"live workers use the state of {name}: {', '.join(workers)}; remove it without "
            f"--delete-state, restart them, and delete it then"
        )
    if place:
        raise ConfigError(
            f"the state of {name} is in {place}: delete it there, with the same command; "
            f"without --delete-state it stays"
        )


def _check_no_copies(stores: Stores, name: str, live: str) -> None:
    """Make sure that the instance is not a copy, and has no copies except its live generation."""
    view = stores.instances.read_view()
    instance = view.all.get(name, Instance(name=name, provider=name))
    if instance.is_copy:
        raise ConfigError(
            f"{name} is a copy; drop it: memorybus replay --cancel {name}"
            if instance.purpose != "rebuild"
            else f"{name} is a generation of {instance.provider}; see: memorybus rebuild ls"
        )
    entry = view.live.get(name)
    kept = {entry.previous} - {""} if entry else set()
    others = {other.name for other in view.all.values() if other.provider == name} - {name, live}
    if kept | others:
        raise ConfigError(
            f"there are copies of {name}: {', '.join(sorted(kept | others))}; drop them first: "
            f"memorybus replay --cancel NAME, or memorybus rebuild --drop {name}"
        )


def _describe_elsewhere(stores: Stores, name: str) -> str:
    home = home_elsewhere(stores.homes.all().get(name), stores.settings)
    return f"{home.path}/providers/{name} on {home.host}" if home else ""


def remove_provider(
    stores: Stores, what: Removal, reason: str, by: str, clock: Clock = SYSTEM
) -> Removal:
    """Remove an instance's lanes, and everything registered of it.

    The settings must not name it any more: the next worker would apply the whole history to it
    again, at the same backend.

    Running workers know the instance until they are restarted. Until then a pause keeps them from
    its lanes, and its provider's entry for the live generation stays, so that no older one serves.

    A failure until the lanes are free leaves everything as it was.

    Raises:
        LanesOwned: a worker does not give its lanes up.
        ConfigError: the settings still name it.
        OSError: the state cannot be deleted.
    """
    if what.block:
        raise ConfigError(
            f"the settings still name {what.name}, so that the next worker would apply the whole "
            f"history to it again: {what.block}; then run the command again"
        )
    served = what.names if what.workers else []
    with _lanes_paused(
        stores, served, InstancePause(f"removed: {reason}", by, clock.now_ms(), state="removed")
    ):
        _await_free(stores, what, clock)
    for name in what.names:
        _forget_instance(stores, name, what)
    if not what.workers:
        stores.instances.resume(what.name)
        stores.instances.unserve(what.name)
    return msgspec.structs.replace(what, executed=True)


@contextmanager
def _lanes_paused(stores: Stores, names: list[str], why: InstancePause) -> "Iterator[None]":
    """Pause instances from now on; if the block fails, restore the pauses that they had before."""
    before = stores.instances.pauses()
    try:
        for name in names:
            stores.instances.set_pause(name, why)
        yield
    except BaseException:
        with suppress(MemoryBusError):  # if Redis is away, an operator has to resume them
            for name in names:
                stores.instances.change_pause(name, partial(_restore_pause, why, before.get(name)))
        raise


def _restore_pause(
    ours: InstancePause, before: InstancePause | None, pause: InstancePause | None
) -> InstancePause | None:
    return before if pause == ours else pause


def _forget_instance(stores: Stores, name: str, what: Removal) -> None:
    stores.lanes.remove(name)
    stores.roster.forget(name)
    stores.instances.remove(name)
    stores.retry_requests.forget(name)
    if what.delete_state:
        delete_state(stores.settings, name)
        stores.homes.forget(name)
    if name == what.generation:
        stores.instances.resume(name)  # its record is gone: no worker takes its lanes again


def _await_free(stores: Stores, what: Removal, clock: Clock) -> None:
    until = clock.monotonic() + _LANE_WAIT_SECONDS
    while any(lane.owned for name in what.names for lane in stores.lanes.states(name)):
        if clock.monotonic() >= until:
            raise LanesOwned(
                f"lanes of {what.name} still have owners after {_LANE_WAIT_SECONDS:.0f} s; nothing "
                f"was removed, and they continue: stop the workers, then run the command again"
            )
        clock.sleep(LOOK_EVERY)


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
        if not self.needed:
            return f"{self.provider} already has its home here"
        return describe_move(self)

    def notes(self) -> Iterator[Remark]:
        if self.needed:
            yield Remark(describe_consequence(self), "yellow")
        if not self.executed and (obstacle := describe_obstacle(self)):
            yield Remark(obstacle, "yellow")

    def is_plan(self) -> bool:
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
            needed=any(each not in homes or not is_same_home(homes[each], ours) for each in every),
            state=str(settings.provider_home(live)),
            state_found=_has_state(settings, live),
            lanes_owned=sum(lane.owned for each in every for lane in stores.lanes.states(each)),
            workers=[w.id for w in stores.roster.alive() if {*every} & {*w.providers}],
            along=along,
            bare=tuple(
                each
                for each in every
                if each != live
                and stores.lanes.count_remaining(each)
                and not _has_state(settings, each)
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
