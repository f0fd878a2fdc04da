"""``memorybus provider remove``: an instance goes, and Redis keeps nothing of it."""

import shutil

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.copies import Copies
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.homes import found_here, is_same
from memorybus.instances import Hold, check_name
from memorybus.surfaces import config_file
from memorybus.surfaces.config_file import Edit
from memorybus.surfaces.filling import LOOK
from memorybus.surfaces.known_providers import check_instance

_PATIENCE = 20.0
"""Seconds for which lanes of a provider that is removed are waited for."""


class LanesOwned(MemoryBusError):
    """Live workers hold on to lanes of a provider that is to be removed."""


class Removal(msgspec.Struct, frozen=True):
    """An instance that could be removed.

    Attributes:
        name: the instance.
        file: the settings file, "" if it does not name the instance.
        diff: what changes in it.
        lanes: of how many Redis holds anything.
        parked: events put aside, which go with them.
        workers: live workers that were told to serve it.
        state: the directory of its state here; None for a shared one, or one that lies elsewhere.
        delete_state: whether that goes too.
        executed: whether it was done.
    """

    name: str
    file: str
    diff: str
    lanes: int
    parked: int
    workers: list[str]
    state: str | None
    delete_state: bool
    executed: bool = False


def removal(desk: Copies, edit: Edit, name: str, *, delete_state: bool) -> Removal:
    """Return what removing an instance would do; change nothing.

    Raises:
        ConfigError: nobody knows it, or copies of it must go first.
        LanesOwned: its state shall go while workers use it.
        LogUnavailable: Redis is away.
    """
    lanes = desk.lanes.left(check_name(name))
    state = _state(desk, name)
    if not (lanes or state or edit.before != edit.after or name in desk.instances.held()):
        check_instance(desk, name)
    records = desk.instances.all().values()
    copies = [one.name for one in records if one.provider == name and one.is_copy]
    if copies:
        raise ConfigError(
            f"there are copies of {name}: {', '.join(copies)}; drop them first: memorybus replay "
            f"--cancel NAME, or memorybus rebuild --drop {name}"
        )
    if (one := desk.instances.get(name)) is not None and one.is_copy:
        raise ConfigError(f"{name} is a copy; drop it: memorybus replay --cancel {name}")
    workers = [worker.id for worker in desk.roster.alive() if name in worker.providers]
    if delete_state and workers:
        raise LanesOwned(
            f"live workers use the state of {name}: {', '.join(workers)}; remove it without "
            f"--delete-state, restart them, and delete it then"
        )
    return Removal(
        name=name,
        file=edit.path if edit.before != edit.after else "",
        diff=edit.diff,
        lanes=lanes,
        parked=sum(lane.parked for lane in desk.lanes.states(name)),
        workers=workers,
        state=state,
        delete_state=delete_state,
    )


def _state(desk: Copies, name: str) -> str | None:
    home = desk.homes.all().get(name)
    path = desk.settings.provider_home(name)
    elsewhere = home is not None and not is_same(home, found_here(desk.settings))
    return None if elsewhere or not path.exists() else str(path)


def remove(
    desk: Copies, edit: Edit, what: Removal, reason: str, by: str, clock: Clock = SYSTEM
) -> Removal:
    """Remove an instance: out of the settings file, its lanes, what is registered of it.

    Workers that run keep it in mind until they are restarted: they are held off its lanes.

    Raises:
        LanesOwned: a worker does not give its lanes up.
        ConfigError: the settings file was changed meanwhile.
        OSError: it cannot be written, or the state cannot be deleted.
        LogUnavailable: Redis is away.
    """
    if what.workers:
        desk.instances.hold(what.name, Hold(f"removed: {reason}", by, clock.now_ms()))
    _await_free(desk, what.name, clock)
    config_file.write(edit)
    desk.lanes.remove(what.name)
    desk.roster.forget(what.name)
    desk.instances.remove(what.name)
    if what.delete_state and what.state:
        shutil.rmtree(what.state)  # follows no links
    if what.delete_state:
        desk.homes.forget(what.name)
    if not what.workers:
        desk.instances.let_go(what.name)
    return msgspec.structs.replace(what, executed=True)


def _await_free(desk: Copies, name: str, clock: Clock) -> None:
    until = clock.monotonic() + _PATIENCE
    while any(lane.owned for lane in desk.lanes.states(name)):
        if clock.monotonic() >= until:
            raise LanesOwned(
                f"lanes of {name} still have owners after {_PATIENCE:.0f} s; nothing was removed, "
                f"and they stay paused: stop the workers and run the command again, or let them "
                f"go on with: memorybus provider resume {name}"
            )
        clock.sleep(LOOK)
