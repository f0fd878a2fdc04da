"""``memorybus provider remove``: removes an instance, and everything that Redis holds of it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LanesOwned, MemoryBusError
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import delete_state, home_elsewhere
from memorybus.registry.instances import Instance, InstancePause, live_name
from memorybus.registry.rebuild_lock import RebuildLock

from memorybus_console.operations.copies.filling import LOOK_EVERY
from memorybus_console.operations.known_providers import check_instance
from memorybus_console.operations.providers.config_file import describe_block
from memorybus_console.operations.stores import Stores
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
        """Return what is removed, and what becomes of its state."""
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
        """Yield which workers still know it."""
        if self.executed and self.workers:
            verb = "fail to recall from it" if self.generation else "recall from it"
            yield Remark(
                f"these workers are set to serve it, and {verb} until they are restarted: "
                f"{', '.join(self.workers)}",
                "yellow",
            )

    def is_plan(self) -> bool:
        """Return whether it is still to be removed."""
        return not self.executed

    @property
    def names(self) -> list[str]:
        """The instance, and then its live generation if it has one."""
        return [self.name, self.generation] if self.generation else [self.name]


@contextmanager
def open_for_removal(settings: Settings, name: str, by: str) -> "Iterator[Stores]":
    """Yield the stores while holding the provider's lock, so that no command rebuilds it meanwhile.

    Raises:
        RebuildRuns: a command works on the provider's instances.
    """
    redis, keys = connect_redis(settings), Keys(settings.namespace)
    try:
        with (
            RebuildLock(redis, keys, name, "removal", by) as lock,
            Stores(settings, lock) as stores,
        ):
            stores.check_partitions()
            yield stores
    finally:
        redis.close()


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
        parked=sum(lane.parked for one in names for lane in stores.lanes.states(one)),
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
    known = view.live.get(name)
    kept = {known.previous} - {""} if known else set()
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
