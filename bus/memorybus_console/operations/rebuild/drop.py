"""``memorybus rebuild --drop``: removes generations that are not live, with their state."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.processes.commands import describe_instance
from memorybus.registry.homes import delete_state, home_elsewhere
from memorybus.registry.instances import Instance, InstancePause, InstancesView, Live, live_name

from memorybus_console.operations.copies.copies import await_removal, mark_dropped
from memorybus_console.operations.copies.freshness import describe_place
from memorybus_console.operations.copies.generations import (
    Generation,
    command_to_finish_swap,
    copies_never_live,
    generations,
    live_after_drop,
    unfinished_swap,
)
from memorybus_console.operations.known_providers import check_provider
from memorybus_console.operations.rebuild.rebuild import Rebuilder
from memorybus_console.operations.stores import Stores
from memorybus_console.result import Remark, Result


class Drop(Result, frozen=True):
    """What would be dropped, or was.

    Attributes:
        dropped: the names of the generations to drop; afterwards, the names of the removed ones.
        remaining: the generations that are marked but not removed yet.
        kept: the previous generation, if it stays for a rollback; else "".
        shared: the places of the states that lie in a backend and stay there, by name.
    """

    provider: str
    live: str
    dropped: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    kept: str = ""
    shared: Mapping[str, str] = {}
    executed: bool = False

    def headline(self) -> str:
        """Return which generations go, what becomes of their state, and which stay."""
        verb = "dropped" if self.executed else "would drop"
        stays = f"{self.live} and {self.kept} stay" if self.kept else f"{self.live} stays"
        names = ", ".join(self.dropped) or "nothing yet"
        return f"{verb}: {names}{self._state()}; {stays}"

    def _state(self) -> str:
        places = {name: self.shared[name] for name in self.dropped if name in self.shared}
        shared = [f"{name} ({place})" if place else name for name, place in places.items()]
        if not shared:
            return " with all state"
        return (
            f", but not the state in the backend of {', '.join(shared)}: delete it there before "
            f"that place is used again"
        )

    def notes(self) -> Iterator[Remark]:
        """Yield what the removal waits for."""
        yield from (Remark(reason, "yellow") for reason in self.waits)

    def is_plan(self) -> bool:
        """Return whether it is still to be done."""
        return not self.executed


def plan_drop(stores: Stores, provider: str) -> Drop:
    """Return what would be dropped; change nothing.

    These are the generations that never served; if there are none, all but the live one.

    Raises:
        ConfigError: the provider is unknown, there is nothing to drop, or a swap is unfinished.
    """
    view = stores.instances.read_view()
    if unfinished_swap(provider, view):
        raise ConfigError(
            f"a swap of {provider} was cut short; first: {command_to_finish_swap(provider, view)}"
        )
    found = generations(provider, view)
    live = live_name(provider, view.live)
    # Generations that are marked already count, so that a repeated command drops no others.
    names = tuple(
        instance.name for instance in copies_never_live(provider, "rebuild", view)
    ) or tuple(
        generation.name
        for generation in found
        if generation.name != live and _has_anything(stores, generation)
    )
    if not names:
        check_provider(stores, provider)
        raise ConfigError(f"nothing to drop: {live} is the only generation of {provider}")
    known = view.live.get(provider, Live(provider))
    kept, shared = (
        live_after_drop(known, names).previous,
        _shared_places(stores, provider, names, view),
    )
    return Drop(provider, live, names, kept=kept, shared=shared)


def _shared_places(
    stores: Stores, provider: str, names: Sequence[str], view: InstancesView
) -> dict[str, str]:
    """Return where shared states are, by instance; empty if the provider is not available here."""
    with suppress(MemoryBusError):
        what = describe_instance(stores.settings, provider)
        if not what.by_home:
            first = Instance(name=provider, provider=provider)
            return {
                name: describe_place(what, view.all.get(name, first), stores.settings.provider)
                for name in names
            }
    return {}


def _has_anything(stores: Stores, generation: Generation) -> bool:
    return (
        generation.name != generation.provider or stores.lanes.count_remaining(generation.name) > 0
    )


def drop_generations(work: Rebuilder, what: Drop, by: str, clock: Clock) -> Drop:
    """Drop generations; afterwards a rollback to them is impossible.

    Args:
        what: see `plan_drop`.

    Raises:
        LogUnavailable: Redis is away; the command has to be repeated.
        ConfigError: the first generation's state lies elsewhere.
        LanesStalled: a worker keeps lanes of the first generation; nothing is dropped.
        OSError: its state cannot be deleted; the command has to be repeated.
        MemoryBusError: another command swapped meanwhile; nothing is dropped.
    """
    stores, first = work.stores, what.provider
    _exclude_from_swaps(work, what, by)
    copies = [name for name in what.dropped if name != first]
    for name in copies:
        mark_dropped(stores, name)
    if first in what.dropped:
        _drop_first(stores, what, clock)
    left = await_removal(stores, copies, clock)
    gone = tuple(name for name in what.dropped if name not in left)
    return msgspec.structs.replace(
        what, dropped=gone, remaining=tuple(left), waits=tuple(left.values()), executed=True
    )


def _exclude_from_swaps(work: Rebuilder, what: Drop, by: str) -> None:
    """Make sure that no command can make a generation live that is to be dropped."""
    first = what.provider
    pause = work.pause(first, first, by)
    try:
        if first in what.dropped:
            _check_state_is_here(work.stores, first)
            if pause.paused_by_person(first) is None:
                # Its lasting pause was ended, so a worker may still take its lanes.
                pause.begin_before_deletion(first)
            else:
                pause.begin(first)
        _forget_generations(work.stores, what)
    except BaseException:
        with suppress(MemoryBusError):
            pause.end(first)
        raise


def _forget_generations(stores: Stores, what: Drop) -> None:
    live = stores.instances.live().get(what.provider)
    known = live or Live(what.provider)
    same = known.instance == what.live
    then = live_after_drop(known, what.dropped)
    if not same or not stores.instances.swap(what.provider, live, then):
        raise MemoryBusError(f"somebody else swapped {what.provider} meanwhile; begin again")


def _check_state_is_here(stores: Stores, first: str) -> None:
    home = home_elsewhere(stores.homes.all().get(first), stores.settings)
    if home is not None:
        raise ConfigError(
            f"the state of {first} is in {home.path} on {home.host}: run this command there"
        )


def _drop_first(stores: Stores, what: Drop, clock: Clock) -> None:
    """Delete the state of the instance of the settings, which stays paused from now on.

    Its lanes are removed last: while they exist, the same command finishes the rest. The instance
    stays in the settings, because the live generation takes its kind and options from there.
    """
    reason = f"dropped: {what.live} serves {what.provider}"
    stores.instances.set_pause(
        what.provider, InstancePause(reason, "", clock.now_ms(), state="dropped")
    )
    delete_state(stores.settings, what.provider)
    stores.lanes.remove(what.provider)
