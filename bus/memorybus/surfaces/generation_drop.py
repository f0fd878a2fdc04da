"""``memorybus rebuild --drop``: generations that do not serve, with their state."""

import shutil

import msgspec

from memorybus.clock import Clock
from memorybus.copies import Copies
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.homes import found_here, is_same
from memorybus.instances import Hold
from memorybus.surfaces.copying import mark_dropped, remaining
from memorybus.surfaces.generations import Generation, generations, unended
from memorybus.surfaces.known_providers import check_provider


class Drop(msgspec.Struct, frozen=True):
    """What is dropped.

    Attributes:
        provider: whose generations.
        live: the one that stays.
        dropped: the names of the others; afterwards, of those that are gone.
        remaining: those that are still there, though marked.
        waits: what the removal of these waits for, in words.
    """

    provider: str
    live: str
    dropped: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()


def droppable(desk: Copies, provider: str) -> Drop:
    """Return what would be dropped; change nothing.

    Raises:
        ConfigError: nobody knows the provider, there is nothing to drop, or a swap is not ended.
    """
    sight = desk.instances.look()
    if unended(provider, sight):
        raise ConfigError(
            f"a swap of {provider} was cut short; first: memorybus rebuild {provider} --execute"
        )
    found = generations(provider, sight)
    live = next(one.name for one in found if one.state == "live")
    names = tuple(one.name for one in found if one.name != live and _is_there(desk, one))
    if not names:
        check_provider(desk, provider)
        raise ConfigError(f"nothing to drop: {live} is the only generation of {provider}")
    return Drop(provider, live, names)


def _is_there(desk: Copies, one: Generation) -> bool:
    return one.name != one.provider or desk.lanes.left(one.name) > 0


def drop(desk: Copies, what: Drop, clock: Clock) -> Drop:
    """Drop them: no rollback after this.

    Raises:
        LogUnavailable: Redis is away; do it again.
        ConfigError: the first generation's state lies elsewhere.
        MemoryBusError: somebody else swapped; what serves now is not dropped.
    """
    first = what.provider
    if first in what.dropped:
        _check_here(desk, first)
    _let_alone(desk, what)
    copies = [name for name in what.dropped if name != first]
    for name in copies:
        mark_dropped(desk, name)
    if first in what.dropped:
        _drop_first(desk, what, clock)
    left = remaining(desk, copies, clock)
    gone = tuple(name for name in what.dropped if name not in left)
    return Drop(first, what.live, gone, tuple(left), tuple(left.values()))


def _let_alone(desk: Copies, what: Drop) -> None:
    """Let nobody roll back, or swap, to what goes: from here on the live one is the only one."""
    known = desk.instances.live().get(what.provider)
    if known is None:
        return
    alone = msgspec.structs.replace(known, previous="", joining="")
    same = known.instance == what.live
    if not same or not desk.instances.swap(what.provider, known, alone):
        raise MemoryBusError(f"somebody else swapped {what.provider} meanwhile; begin again")


def _check_here(desk: Copies, first: str) -> None:
    home = desk.homes.all().get(first)
    if home is not None and not is_same(home, found_here(desk.settings)):
        raise ConfigError(
            f"the state of {first} lies in {home.path} on {home.host}: run this command there"
        )


def _drop_first(desk: Copies, what: Drop, clock: Clock) -> None:
    """Drop the state of the instance of the settings; it stands still from now on.

    It goes on being configured: its kind and options are those of the generation that serves.
    """
    why = f"dropped: {what.live} serves {what.provider}"
    desk.instances.hold(what.provider, Hold(why, "", clock.now_ms()))
    desk.lanes.remove(what.provider)
    state = desk.settings.provider_home(what.provider)
    if state.is_symlink():
        state.unlink()  # what it points to is not ours
    elif state.exists():
        shutil.rmtree(state)
