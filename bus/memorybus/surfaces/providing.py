"""``memorybus provider add|pause|resume``: instances that come late, stand still and go on."""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.copies import Copies
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.instances import Hold, Instance, check_name
from memorybus.plan import Plan, Span
from memorybus.settings import Settings
from memorybus.surfaces import config_file
from memorybus.surfaces.children import described
from memorybus.surfaces.config_file import Edit
from memorybus.surfaces.known_providers import check_instance
from memorybus.surfaces.replaying import spans

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
    what = described(then, name)
    known = 0
    if since != BEGINNING:
        with Copies(settings) as desk:
            known = desk.lanes.left(name)
            _check_new(name, since, known)
            spans(settings, desk.history, "" if since == NOW else since, "")
    return Addition(
        name, what.kind, what.delivery, what.placement, edit.path, edit.diff, since, known
    )


def _check_new(name: str, since: str, known: int) -> None:
    if known:
        raise ConfigError(
            f"{name} is known to the log: {known} of its lanes go on where they were, whatever "
            f"--from {since} says; remove these first: memorybus provider remove {name}"
        )


def add(settings: Settings, edit: Edit, what: Addition, by: str, clock: Clock = SYSTEM) -> Addition:
    """Write the settings, and note where the instance begins; running workers do not read them.

    Raises:
        ConfigError: the file was changed meanwhile.
        OSError: it cannot be written.
        LogUnavailable: Redis is away, and the instance does not begin at the beginning.
    """
    if what.since != BEGINNING:
        with Copies(settings) as desk:
            _begin_late(desk, what, by, clock)
    else:
        _begin_new(settings, what.name)
    config_file.write(edit)
    return msgspec.structs.replace(what, executed=True)


def _begin_new(settings: Settings, name: str) -> None:
    """Note that its lanes are new; without Redis a ``lookup`` one is asked for the whole past."""
    with Copies(settings) as desk, contextlib.suppress(LogUnavailable):
        desk.lanes.bear(name)


def _begin_late(desk: Copies, what: Addition, by: str, clock: Clock) -> None:
    """Note a plan under the instance's own name: what comes before it is passed without a call."""
    since = "" if what.since == NOW else what.since
    found = spans(desk.settings, desk.history, since, "")
    heads = {p: one[0].last or 0 for p, one in found.items()}
    first = {p: heads[p] + 1 if what.since == NOW else found[p][0].first for p in found}
    plan = Plan(spans={p: (Span(n),) for p, n in first.items()})
    desk.instances.remove(what.name)
    desk.make(
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
    desk.instances.let_go(what.name)


class Pause(msgspec.Struct, frozen=True):
    """An instance whose lanes stand still, or go on.

    Attributes:
        name: the instance.
        paused: whether its lanes shall stand still from now on.
        changed: whether that is news.
        reason: why they stand, or stood, still.
        backlog: events that wait for it.
    """

    name: str
    paused: bool
    changed: bool
    reason: str
    backlog: int


def pause(desk: Copies, name: str, reason: str, by: str, clock: Clock = SYSTEM) -> Pause:
    """Let an instance's lanes stand still; its recalls go on.

    Raises:
        ConfigError: nobody knows it.
        LogUnavailable: Redis is away.
    """
    check_instance(desk, name)
    before = desk.instances.held().get(name)
    if before is None:
        desk.instances.hold(name, Hold(reason, by, clock.now_ms()))
    why = before.reason if before else reason
    return Pause(name, True, before is None, why, _backlog(desk, name))


def resume(desk: Copies, name: str) -> Pause:
    """Let an instance's lanes go on.

    Raises:
        ConfigError: nobody knows it.
        LogUnavailable: Redis is away.
    """
    held = desk.instances.held().get(name)
    if held is None:
        check_instance(desk, name)
    changed = desk.instances.let_go(name)
    return Pause(name, False, changed, held.reason if held else "", _backlog(desk, name))


def _backlog(desk: Copies, name: str) -> int:
    heads = sum(head.n for head in desk.history.log.heads())
    return max(0, heads - sum(lane.n for lane in desk.lanes.states(name)))
