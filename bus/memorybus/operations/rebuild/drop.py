"""``memorybus rebuild --drop``: generations that do not serve, with their state."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from memorybus.clock import Clock
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.operations.copies.copies import mark_dropped, remaining
from memorybus.operations.copies.freshness import told_place
from memorybus.operations.copies.generations import (
    Generation,
    begun,
    ending,
    generations,
    unended,
    without,
)
from memorybus.operations.copies.kept import DROPPED
from memorybus.operations.known_providers import check_provider
from memorybus.operations.rebuild.rebuild import Rebuilder
from memorybus.operations.stores import Copies
from memorybus.processes.commands import described
from memorybus.registry.homes import delete_state, elsewhere
from memorybus.registry.instances import Instance, Live, Sight, live_name
from memorybus.registry.pauses import Hold


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


def droppable(desk: Copies, provider: str) -> Drop:
    """Return what would be dropped: what was begun and never served; else all but what serves.

    Changes nothing.

    Raises:
        ConfigError: nobody knows the provider, there is nothing to drop, or a swap is not ended.
    """
    sight = desk.instances.look()
    if unended(provider, sight):
        raise ConfigError(f"a swap of {provider} was cut short; first: {ending(provider, sight)}")
    found = generations(provider, sight)
    live = live_name(provider, sight.live)
    # What is marked already counts, too: who asks twice loses nothing more.
    names = tuple(one.name for one in begun(provider, "rebuild", sight)) or tuple(
        one.name for one in found if one.name != live and _is_there(desk, one)
    )
    if not names:
        check_provider(desk, provider)
        raise ConfigError(f"nothing to drop: {live} is the only generation of {provider}")
    known = sight.live.get(provider, Live(provider))
    kept, shared = without(known, names).previous, _shared(desk, provider, names, sight)
    return Drop(provider, live, names, kept=kept, shared=shared)


def _shared(desk: Copies, provider: str, names: Sequence[str], sight: Sight) -> dict[str, str]:
    """Return where shared states are, by instance; nothing if nobody here knows the provider."""
    with suppress(MemoryBusError):
        what = described(desk.settings, provider)
        if not what.by_home:
            first = Instance(name=provider, provider=provider)
            return {
                name: told_place(what, sight.all.get(name, first), desk.settings.provider)
                for name in names
            }
    return {}


def _is_there(desk: Copies, one: Generation) -> bool:
    return one.name != one.provider or desk.lanes.left(one.name) > 0


def drop(work: Rebuilder, what: Drop, by: str, clock: Clock) -> Drop:
    """Drop them: no rollback to them after this.

    Args:
        work: has the provider's lock.
        what: see `droppable`.
        by: who does it.
        clock: time.

    Raises:
        LogUnavailable: Redis is away; do it again.
        ConfigError: the first generation's state lies elsewhere.
        Stalled: somebody goes on working on the first generation; nothing is dropped.
        OSError: its state cannot be deleted; do it again.
        MemoryBusError: somebody else swapped; what serves now is not dropped.
    """
    desk, first = work.desk, what.provider
    _let_alone(work, what, by)
    copies = [name for name in what.dropped if name != first]
    for name in copies:
        mark_dropped(desk, name)
    if first in what.dropped:
        _drop_first(desk, what, clock)
    left = remaining(desk, copies, clock)
    gone = tuple(name for name in what.dropped if name not in left)
    return Drop(first, what.live, gone, tuple(left), tuple(left.values()), what.kept, what.shared)


def _let_alone(work: Rebuilder, what: Drop, by: str) -> None:
    """Let nobody roll back, or swap, to what goes; only when nobody works on the first of all."""
    first = what.provider
    barrier = work.barrier(first, first, by)
    try:
        if first in what.dropped:
            _check_here(work.desk, first)
            if barrier.pause_of(first) is None:
                barrier.hold_for_sure(first)  # somebody resumed it
            else:
                barrier.hold(first)
        _forget(work.desk, what)
    except BaseException:
        with suppress(MemoryBusError):
            barrier.let_go(first)
        raise


def _forget(desk: Copies, what: Drop) -> None:
    found = desk.instances.live().get(what.provider)
    known = found or Live(what.provider)
    same = known.instance == what.live
    then = without(known, what.dropped)
    if not same or not desk.instances.swap(what.provider, found, then):
        raise MemoryBusError(f"somebody else swapped {what.provider} meanwhile; begin again")


def _check_here(desk: Copies, first: str) -> None:
    home = elsewhere(desk.homes.all().get(first), desk.settings)
    if home is not None:
        raise ConfigError(
            f"the state of {first} lies in {home.path} on {home.host}: run this command there"
        )


def _drop_first(desk: Copies, what: Drop, clock: Clock) -> None:
    """Drop the state of the instance of the settings; it stands still from now on.

    Its lanes go last: as long as they are there, the same command does what is left. It goes on
    being configured: its kind and options are those of the generation that serves.
    """
    why = f"{DROPPED} {what.live} serves {what.provider}"
    desk.instances.hold(what.provider, Hold(why, "", clock.now_ms()))
    delete_state(desk.settings, what.provider)
    desk.lanes.remove(what.provider)
