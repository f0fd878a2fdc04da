"""``memorybus provider add|pause|resume``: instances are added, pause, and go on."""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.operations.copies.generations import generations
from memorybus.operations.copies.replay import spans
from memorybus.operations.known_providers import check_instance
from memorybus.operations.providers import config_file
from memorybus.operations.providers.config_file import Edit
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.query.ranges import Plan, Span
from memorybus.registry.instances import Instance, InstancesView, live_name
from memorybus.registry.pauses import InstancePause, command_part, lasting_pause

BEGINNING, NOW = "beginning", "now"


class Addition(msgspec.Struct, frozen=True):
    """An instance that could be added.

    Attributes:
        name: its own.
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        file: the settings file.
        diff: what changes in it.
        since: where in the history it begins: ``beginning``, ``now``, or a moment.
        known_lanes: lanes of that name that Redis still knows: it goes on where these are.
        executed: whether it was done.
    """

    name: str
    kind: str
    delivery: str
    placement: str
    file: str
    diff: str
    since: str
    known_lanes: int
    executed: bool = False


def addition(
    settings: Settings, edit: Edit, name: str, since: str, given: Mapping[str, Any]
) -> Addition:
    """Return what adding an instance would do; change nothing.

    Args:
        settings: where the bus is.
        edit: of the settings file.
        name: the instance.
        since: where in the history it begins.
        given: settings that the command line names.

    Raises:
        ConfigError: it cannot be added so.
        MissingProvider: its kind is not known or not available here.
        LogUnavailable: Redis is away, and `since` is no word.
    """
    check_name(name)
    then = config_file.settings_of(edit, **given)
    if name not in then.providers:
        raise ConfigError(
            f"MEMORYBUS_PROVIDERS names the providers, so that those of {edit.path} do not count; "
            f"add {name} there"
        )
    what = describe_instance(then, name)
    known = 0
    if since != BEGINNING:
        with Stores(settings) as stores:
            known = _begun(stores, name)
            _check_new(name, since, known)
            spans(settings, stores.history, "" if since == NOW else since, "")
    return Addition(
        name, what.kind, what.delivery, what.placement, edit.path, edit.diff, since, known
    )


def _check_new(name: str, since: str, known: int) -> None:
    if known:
        raise ConfigError(
            f"{name} is known to the log: {known} of its lanes go on where they were, whatever "
            f"--from {since} says; remove these first: memorybus provider remove {name}"
        )


def _begun(stores: Stores, name: str) -> int:
    """Count the lanes of a name on which somebody works, or has worked."""
    lanes = stores.lanes.states(name)
    return sum(bool(lane.n or lane.parked or lane.discarded or lane.owned) for lane in lanes)


def add(settings: Settings, edit: Edit, what: Addition, by: str, clock: Clock = SYSTEM) -> Addition:
    """Write the settings, and note where the instance begins; running workers do not read them.

    Raises:
        ConfigError: the file was changed meanwhile, a copy is called so, or workers still serve one
            of that name that was removed.
        OSError: it cannot be written.
        LogUnavailable: Redis is away, and the instance does not begin at the beginning.
    """
    with Stores(settings) as stores:
        if what.since != BEGINNING:
            _begin_late(stores, what, by, clock)
        else:
            _begin_new(stores, what.name)
    config_file.write(edit)
    return msgspec.structs.replace(what, executed=True)


def _begin_new(stores: Stores, name: str) -> None:
    """Note that its lanes are new; without Redis a ``lookup`` one is asked for the whole past."""
    with contextlib.suppress(LogUnavailable):
        _check_free(stores, name)
        if not _begun(stores, name):
            stores.instances.remove(name)  # the plan of an addition that could not be ended
        stores.lanes.note_new_lanes(name)
        _let_go(stores, name)


def _check_free(stores: Stores, name: str) -> None:
    """Make sure that the new instance is not taken for another.

    Raises:
        ConfigError: it is called as a copy is, or workers would go on as the removed one.
    """
    one = stores.instances.get(name)
    if one is not None and one.is_copy:
        raise ConfigError(f"{name!r} is a copy of {one.provider}; choose another name")
    known = [worker.id for worker in stores.roster.alive() if name in worker.providers]
    if known and _is_removed(stores, name):
        raise ConfigError(
            f"{name} was removed, and these workers still serve it as it was: {', '.join(known)}; "
            f"restart them first"
        )


def _is_removed(stores: Stores, name: str) -> bool:
    held = stores.instances.pauses().get(name)
    return held is not None and held.state == "removed"


def _let_go(stores: Stores, name: str) -> None:
    """Let an instance that was removed begin as a new one: it serves itself, and is not held."""
    _serve_itself(stores, name)
    if _is_removed(stores, name):
        stores.instances.resume(name)


def _serve_itself(stores: Stores, name: str) -> None:
    """Let a provider serve itself, if the generation that served it was removed."""
    if live_name(name, stores.instances.live()) != _meant(stores, name):
        stores.instances.unserve(name)


def _begin_late(stores: Stores, what: Addition, by: str, clock: Clock) -> None:
    """Note a plan under the instance's own name: what comes before it is passed without a call."""
    since = "" if what.since == NOW else what.since
    found = spans(stores.settings, stores.history, since, "")
    heads = {p: one[0].last or 0 for p, one in found.items()}
    first = {p: heads[p] + 1 if what.since == NOW else found[p][0].first for p in found}
    plan = Plan(spans={p: (Span(n),) for p, n in first.items()})
    _check_free(stores, what.name)
    stores.instances.remove(what.name)
    stores.make(
        Instance(
            name=what.name,
            provider=what.name,
            plan=plan,
            purpose="added",
            made_at=clock.now_ms(),
            made_by=by,
            reason=f"added from {what.since}",
        )
    )
    _let_go(stores, what.name)


def served_by(stores: Stores, name: str) -> str:
    """Return the instance that a name means, of those that somebody knows.

    Raises:
        ConfigError: nobody knows it.
        LogUnavailable: Redis is away.
    """
    check_instance(stores, name)
    return _meant(stores, name)


def _meant(stores: Stores, name: str) -> str:
    """Return the instance that a name means: the one that serves it, or itself if that is gone."""
    live = live_name(name, stores.instances.live())
    return name if stores.instances.get(live) is None else live


class Pause(msgspec.Struct, frozen=True):
    """An instance whose lanes stand still, or go on.

    Attributes:
        name: the instance.
        paused: whether its lanes shall stand still from now on.
        changed: whether that is news.
        reason: why they stand, or stood, still.
        backlog: events that wait for it.
        serves: the provider that was named, if the instance is a generation that serves it.
        executed: whether it was done.
    """

    name: str
    paused: bool
    changed: bool
    reason: str
    backlog: int
    serves: str = ""
    executed: bool = True


def pause_plan(stores: Stores, name: str, reason: str) -> Pause:
    """Return what `pause` would do; change nothing.

    Raises:
        ConfigError: nobody knows the instance.
        LogUnavailable: Redis is away.
    """
    live = served_by(stores, name)
    held = lasting_pause(stores.instances.pauses().get(live))
    why = held.reason if held else reason
    what = _pause_of(stores, name, live, paused=True, changed=held is None, reason=why)
    return msgspec.structs.replace(what, executed=False)


def resume_plan(stores: Stores, name: str) -> Pause:
    """Return what `resume` would do; change nothing.

    Raises:
        ConfigError: nobody knows the instance, or it shall stand still.
        LogUnavailable: Redis is away.
    """
    sight, live = stores.instances.look(), _meant(stores, name)
    if live not in sight.pauses:
        check_instance(stores, name)
    _check_wakes(live, sight)
    held = sight.pauses.get(live)
    why = held.reason if held else ""
    what = _pause_of(stores, name, live, paused=False, changed=held is not None, reason=why)
    return msgspec.structs.replace(what, executed=False)


def pause(stores: Stores, name: str, reason: str, by: str, clock: Clock = SYSTEM) -> Pause:
    """Let an instance's lanes stand still; its recalls go on.

    A provider's name means the generation that serves it, unless that was removed.

    Raises:
        ConfigError: nobody knows it.
        LogUnavailable: Redis is away.
    """
    live = served_by(stores, name)
    before = stores.instances.pause(live, InstancePause(reason, by, clock.now_ms()))
    why = before.reason if before else reason
    return _pause_of(stores, name, live, paused=True, changed=before is None, reason=why)


def resume(stores: Stores, name: str) -> Pause:
    """Let an instance's lanes go on.

    A provider's name means the generation that serves it; one that was removed serves no more from
    now on. What a command holds goes on when that has ended, or at once if it was killed.

    Raises:
        ConfigError: nobody knows it, or it shall stand still: it does not serve any more.
        LogUnavailable: Redis is away.
    """
    _serve_itself(stores, name)
    sight = stores.instances.look()
    live = live_name(name, sight.live)
    if live not in sight.pauses:
        check_instance(stores, name)
    _check_wakes(live, sight)
    provider = sight.all[live].provider if live in sight.all else live
    at_work = stores.working([provider])
    was = stores.instances.change_pause(
        live, lambda known: command_part(known) if provider in at_work else None
    )
    held = lasting_pause(was) if provider in at_work else was
    why = held.reason if held else ""
    return _pause_of(stores, name, live, paused=False, changed=held is not None, reason=why)


def _check_wakes(name: str, sight: InstancesView) -> None:
    """Make sure that an instance has something to do.

    Raises:
        ConfigError: it was dropped, or it is a generation that serves no more.
    """
    one = sight.all.get(name, Instance(name=name, provider=name))
    states = {known.name: known.state for known in generations(one.provider, sight)}
    state = "dropped" if one.dropped else states.get(name, "")
    if state in ("kept", "unused", "dropped"):
        raise ConfigError(
            f"{name} stands still for good, since it does not serve {one.provider} any more "
            f"({state}); see memorybus rebuild ls; back to one that is kept: memorybus rebuild "
            f"--rollback {one.provider}"
        )


def _pause_of(
    stores: Stores, name: str, live: str, *, paused: bool, changed: bool, reason: str
) -> Pause:
    serves = name if name != live else ""
    return Pause(live, paused, changed, reason, _backlog(stores, live), serves)


def _backlog(stores: Stores, name: str) -> int:
    heads = sum(head.n for head in stores.history.log.heads())
    return max(0, heads - sum(lane.n for lane in stores.lanes.states(name)))
