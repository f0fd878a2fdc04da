"""Lists copies as an operator sees them, and drops one."""

from collections.abc import Collection, Sequence
from typing import Annotated

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import ConfigError
from memorybus.registry.homes import Home, home_elsewhere
from memorybus.registry.instances import Instance, live_name
from memorybus.text.display import iso

from memorybus_console.operations.copies.replay import LOOK_EVERY, LocalWorker
from memorybus_console.operations.stores import Stores
from memorybus_console.result import TEXT, TIME, Column, Result

_REMOVAL_WAIT_SECONDS = 20.0  # seconds to wait until a dropped copy is removed


class Copy(Result, frozen=True):
    """A copy of a provider.

    Attributes:
        purpose: which command made it: ``replay``, ``rebuild``, ``verify``.
        state: ``filling``, ``done``, ``following`` (its plan has no end), ``live``, ``paused``,
            ``dropped``.
        done: positions of the history that it has passed.
        total: positions in its plan; None if the plan has no end.
        home: where its state is; None for a shared state.
        made_at: when it was made (ISO 8601).
    """

    name: Annotated[str, Column("copy")]
    provider: Annotated[str, Column("of")]
    purpose: Annotated[str, Column("for")]
    state: str
    done: int
    total: int | None
    parked: int
    home: str | None
    made_at: Annotated[str | None, TIME]
    made_by: str
    reason: Annotated[str, TEXT]


class CopyDropped(Copy, frozen=True, kw_only=True):
    """A copy that is, or would be, dropped."""

    executed: bool = False
    gone: bool = False
    waits: str = ""

    def headline(self) -> str:
        if self.waits:
            return self.waits
        state = f" and what lies in {self.home}" if self.home else ""
        verb = "dropped" if self.executed else "would drop"
        return f"{verb} {self.name}, a copy of {self.provider}, with its lanes{state}"

    def is_plan(self) -> bool:
        return not self.executed


def list_copies(stores: Stores) -> list[Copy]:
    view = stores.instances.read_view()
    live = {
        name for instance in view.all.values() if (name := live_name(instance.provider, view.live))
    }
    homes = stores.homes.all()
    return [
        _describe_copy(
            stores, instance, homes, paused=instance.name in view.pauses, live=instance.name in live
        )
        for instance in view.all.values()
        if instance.is_copy
    ]


def _describe_copy(
    stores: Stores, instance: Instance, homes: dict[str, Home], *, paused: bool, live: bool
) -> Copy:
    lanes = stores.lanes.states(instance.name)
    ends = [instance.plan.end(partition) for partition in range(stores.settings.partitions)]
    total = None if None in ends else sum(end or 0 for end in ends)
    done = sum(
        lane.n if end is None else min(lane.n, end) for lane, end in zip(lanes, ends, strict=True)
    )
    home = homes.get(instance.name)
    return Copy(
        name=instance.name,
        provider=instance.provider,
        purpose=instance.purpose,
        state=_state_of(instance, done, total, paused=paused, live=live),
        done=done,
        total=total,
        parked=sum(lane.parked for lane in lanes),
        home=_describe_place(instance.name, home) if home else None,
        made_at=iso(instance.made_at),
        made_by=instance.made_by,
        reason=instance.reason,
    )


def _state_of(instance: Instance, done: int, total: int | None, *, paused: bool, live: bool) -> str:
    words = (
        ("dropped", instance.dropped),
        ("paused", paused),
        ("live", live),
        ("following", total is None),
        ("done", total is not None and done >= total),
    )
    return next((word for word, so in words if so), "filling")


def copy_to_drop(stores: Stores, name: str) -> Copy:
    """Return the copy that would be dropped.

    Raises:
        ConfigError: no copy has that name, or it is live, or it belongs to a rebuild.
    """
    copies = {copy.name: copy for copy in list_copies(stores)}
    if name not in copies:
        names = ", ".join(copies) or "none"
        raise ConfigError(f"no copy is called {name!r}; there are: {names}")
    copy = copies[name]
    if copy.state == "live" or copy.purpose == "rebuild":
        raise ConfigError(
            f"{name} belongs to the rebuilds of {copy.provider}; see: memorybus rebuild ls"
        )
    return copy


def drop_copy(stores: Stores, copy: Copy, clock: Clock = SYSTEM) -> str:
    """Mark a copy as dropped, and wait until a worker of this command or another has removed it.

    Returns:
        What its removal still waits for, in words; "" if the copy is gone.
    """
    mark_dropped(stores, copy.name)
    if home_elsewhere(stores.homes.all().get(copy.name), stores.settings) is None:
        with LocalWorker(stores.settings, copy.name) as worker:
            return await_removal(stores, [copy.name], clock, worker).get(copy.name, "")
    return await_removal(stores, [copy.name], clock).get(copy.name, "")


def mark_dropped(stores: Stores, name: str) -> None:
    """Mark a copy as dropped, so that a worker removes it; repeating this changes nothing."""
    while (instance := stores.instances.get(name)) is not None and not instance.dropped:
        stores.instances.change(instance, msgspec.structs.replace(instance, dropped=True))


def await_removal(
    stores: Stores, names: Sequence[str], clock: Clock, ours: LocalWorker | None = None
) -> dict[str, str]:
    """Wait until workers have removed dropped copies, as long as one that can do so is alive.

    Args:
        ours: the command's own worker that removes one, if any.

    Returns:
        The copies that still exist, each with what its removal waits for, in words.
    """
    homes, until = stores.homes.all(), clock.monotonic() + _REMOVAL_WAIT_SECONDS
    while True:
        there, hosts = stores.instances.all(), {worker.host for worker in stores.roster.alive()}
        remaining = [name for name in names if name in there]
        able = ours is not None or any(
            _can_be_removed(homes.get(name), hosts) for name in remaining
        )
        if not remaining or not able or clock.monotonic() >= until:
            return {name: _describe_wait(name, homes.get(name), hosts) for name in remaining}
        if ours is not None:
            ours.watch()
        clock.sleep(LOOK_EVERY)


def _can_be_removed(home: Home | None, hosts: Collection[str]) -> bool:
    """Return whether a live worker may remove a copy with this home (pure)."""
    return bool(hosts) if home is None else home.host in hosts


def _describe_wait(name: str, home: Home | None, hosts: Collection[str]) -> str:
    """Return in words what the removal of a dropped copy waits for (pure)."""
    lies = f"; its state lies in {_describe_place(name, home)}" if home else ""
    there = " there" if home else ""
    does = (
        f"a worker{there} removes it as soon as it can"
        if _can_be_removed(home, hosts)
        else f"no worker{there} is alive: start one, and it removes it"
    )
    return f"{name} is marked, but not removed yet{lies}; {does}"


def _describe_place(name: str, home: Home) -> str:
    return f"{home.path}/providers/{name} on {home.host}"
