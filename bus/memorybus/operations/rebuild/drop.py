"""``memorybus rebuild --drop`` removes generations that do not serve, with their state."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from memorybus.clock import Clock
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.operations.copies.copies import mark_dropped, remaining
from memorybus.operations.copies.freshness import place_text
from memorybus.operations.copies.generations import (
    Generation,
    begun,
    ending,
    generations,
    unended,
    without,
)
from memorybus.operations.known_providers import check_provider
from memorybus.operations.rebuild.rebuild import Rebuilder
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.registry.homes import delete_state, home_elsewhere
from memorybus.registry.instances import Instance, InstancesView, Live, live_name
from memorybus.registry.pauses import InstancePause


class Drop(msgspec.Struct, frozen=True):
    """What is dropped.

    Attributes:
        provider: whose generations.
        live: the one that serves; it stays.
        dropped: the names of those that go; afterwards, of those that are gone.
        remaining: those that are still there, though marked.
        waits: what the removal of these waits for, in words.
        kept: the one before, for a rollback, if it stays; else "".
        shared: where the state is, by name, of those whose state is in a backend and stays there.
    """

    provider: str
    live: str
    dropped: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    kept: str = ""
    shared: Mapping[str, str] = {}


def droppable(stores: Stores, provider: str) -> Drop:
    """Return what would be dropped; change nothing.

    That is what was begun and never served; if nothing was, all generations but the live one.

    Raises:
        ConfigError: nobody knows the provider, there is nothing to drop, or a swap is not ended.
    """
    sight = stores.instances.look()
    if unended(provider, sight):
        raise ConfigError(f"a swap of {provider} was cut short; first: {ending(provider, sight)}")
    found = generations(provider, sight)
    live = live_name(provider, sight.live)
    # What is marked already counts, too, so that the same command twice drops nothing more.
    names = tuple(one.name for one in begun(provider, "rebuild", sight)) or tuple(
        one.name for one in found if one.name != live and _is_there(stores, one)
    )
    if not names:
        check_provider(stores, provider)
        raise ConfigError(f"nothing to drop: {live} is the only generation of {provider}")
    known = sight.live.get(provider, Live(provider))
    kept, shared = without(known, names).previous, _shared(stores, provider, names, sight)
    return Drop(provider, live, names, kept=kept, shared=shared)


def _shared(
    stores: Stores, provider: str, names: Sequence[str], sight: InstancesView
) -> dict[str, str]:
    """Return where shared states are, by instance; nothing if the provider is not known here."""
    with suppress(MemoryBusError):
        what = describe_instance(stores.settings, provider)
        if not what.by_home:
            first = Instance(name=provider, provider=provider)
            return {
                name: place_text(what, sight.all.get(name, first), stores.settings.provider)
                for name in names
            }
    return {}


def _is_there(stores: Stores, one: Generation) -> bool:
    return one.name != one.provider or stores.lanes.count_remaining(one.name) > 0


def drop(work: Rebuilder, what: Drop, by: str, clock: Clock) -> Drop:
    """Drop generations; a rollback to them is not possible afterwards.

    Args:
        work: has the provider's lock.
        what: see `droppable`.
        by: who does it.
        clock: time.

    Raises:
        LogUnavailable: Redis is away; do it again.
        ConfigError: the first generation's state lies elsewhere.
        LanesStalled: somebody goes on working on the first generation; nothing is dropped.
        OSError: its state cannot be deleted; do it again.
        MemoryBusError: another command swapped; what serves now is not dropped.
    """
    stores, first = work.stores, what.provider
    _let_alone(work, what, by)
    copies = [name for name in what.dropped if name != first]
    for name in copies:
        mark_dropped(stores, name)
    if first in what.dropped:
        _drop_first(stores, what, clock)
    left = remaining(stores, copies, clock)
    gone = tuple(name for name in what.dropped if name not in left)
    return Drop(first, what.live, gone, tuple(left), tuple(left.values()), what.kept, what.shared)


def _let_alone(work: Rebuilder, what: Drop, by: str) -> None:
    """Make sure that no command rolls back, or swaps, to a generation that goes.

    Raises:
        LanesStalled: somebody works on the first generation, which is among them.
    """
    first = what.provider
    pause = work.pause(first, first, by)
    try:
        if first in what.dropped:
            _check_here(work.stores, first)
            if pause.paused_by_person(first) is None:
                pause.hold_before_deletion(first)  # somebody resumed it
            else:
                pause.hold(first)
        _forget(work.stores, what)
    except BaseException:
        with suppress(MemoryBusError):
            pause.release(first)
        raise


def _forget(stores: Stores, what: Drop) -> None:
    found = stores.instances.live().get(what.provider)
    known = found or Live(what.provider)
    same = known.instance == what.live
    then = without(known, what.dropped)
    if not same or not stores.instances.swap(what.provider, found, then):
        raise MemoryBusError(f"somebody else swapped {what.provider} meanwhile; begin again")


def _check_here(stores: Stores, first: str) -> None:
    home = home_elsewhere(stores.homes.all().get(first), stores.settings)
    if home is not None:
        raise ConfigError(
            f"the state of {first} lies in {home.path} on {home.host}: run this command there"
        )


def _drop_first(stores: Stores, what: Drop, clock: Clock) -> None:
    """Delete the state of the instance of the settings; it stands still from now on.

    Its lanes go last: while they are there, the same command does what is left. It stays in the
    settings, because the generation that serves has its kind and options.
    """
    reason = f"dropped: {what.live} serves {what.provider}"
    stores.instances.set_pause(
        what.provider, InstancePause(reason, "", clock.now_ms(), state="dropped")
    )
    delete_state(stores.settings, what.provider)
    stores.lanes.remove(what.provider)
