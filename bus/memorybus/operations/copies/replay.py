"""``memorybus replay``: which part of the history goes into a copy, and how the copy is made."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.history.history import History
from memorybus.operations.copies.counting import HistoryCount, Taking, Tell, counted
from memorybus.operations.copies.freshness import left_of, owner_of, remedy, shared
from memorybus.operations.known_providers import check_provider
from memorybus.operations.moments import moment_of, numbers_before, numbers_upto
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.query.query import Query
from memorybus.query.ranges import Plan, Span
from memorybus.registry.description import InstanceDescription
from memorybus.registry.homes import Home, find_local_home, is_same_home, local_home
from memorybus.registry.instances import CopyRequest, Instance, normalise_options

Describe = Callable[[Settings, str, str, Mapping[str, Any]], InstanceDescription]

_MOMENT = 0.5
"""Seconds in which a command that has made a copy's lanes writes its record, too."""


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay is asked to do.

    Attributes:
        provider: the instance of the settings whose kind and options the copy has.
        into: the copy's name.
        query: which events; its lineages need not be resolved.
        since: the first moment (see `memorybus.operations.moments`); "" for the beginning.
        until: the last one; "" for now.
        rate: events a second at most, from now on; 0.0 for as fast as it goes, None for what it
            was begun with.
        options: what differs from the provider's.
        force: also into a target that is not empty.
        reason: why.
        by: who.
    """

    provider: str
    into: str
    query: Query = Query()
    since: str = ""
    until: str = ""
    rate: float | None = None
    options: Mapping[str, Any] = {}
    force: bool = False
    reason: str = ""
    by: str = ""


class Planned(msgspec.Struct, frozen=True):
    """A replay that could begin now.

    Attributes:
        instance: the copy's record, as it is or would be.
        known: whether there is one already: the same command goes on.
        kind: the provider behind it.
        delivery: its class (G4).
        placement: "local" or "shared".
        home: where a local copy's state will lie.
        here: whether we can fill it ourselves.
        counted: what it takes.
        least_seconds: how long it takes at least: by the rate, or by reading alone.
    """

    instance: Instance
    known: bool
    kind: str
    delivery: str
    placement: str
    home: Home | None
    here: bool
    counted: HistoryCount
    least_seconds: float


def planned(
    stores: Stores,
    wanted: ReplayRequest,
    tell: Tell = lambda done, total: None,
    clock: Clock = SYSTEM,
    describe: Describe = describe_instance,
) -> Planned:
    """Return what a replay would do; change nothing.

    Args:
        stores: the stores.
        wanted: what is asked.
        tell: receives how many events are read, and of how many.
        clock: time.
        describe: finds out what the copy would be.

    Raises:
        ConfigError: the provider or a moment is unknown, or the target is live or not empty.
        MissingProvider: the copy cannot be made here.
        LogError, ArchiveError: the history cannot be read.
    """
    check_provider(stores, wanted.provider)
    what = describe(stores.settings, wanted.provider, wanted.into, wanted.options)
    _check_target(stores, wanted)
    known, instance = _record(stores, wanted, what, clock)
    home = _home(stores, wanted.provider) if what.placement == "local" else None
    ends = instance.plan.ends(stores.settings.partitions)
    found = counted(stores, Taking(wanted.provider, what, instance.plan, ends), tell, clock)
    rate = instance.plan.rate
    return Planned(
        instance=instance,
        known=known,
        kind=what.kind,
        delivery=what.delivery,
        placement=what.placement,
        home=home,
        here=home is None or is_same_home(home, find_local_home(stores.settings)) or not home.place,
        counted=found,
        least_seconds=found.events / rate if rate else found.seconds,
    )


def _record(
    stores: Stores, wanted: ReplayRequest, what: InstanceDescription, clock: Clock
) -> tuple[bool, Instance]:
    """Return whether the copy is known already, and its record as it is or would be."""
    known = stores.instances.get(wanted.into)
    asked = _instance(stores, wanted, clock)
    if known is None and not wanted.force:
        known = _begun_meanwhile(stores, asked, what, clock)
    return known is not None, asked if known is None else _resumed(known, asked, wanted)


def _check_target(stores: Stores, wanted: ReplayRequest) -> None:
    into = check_name(wanted.into)
    registered = stores.roster.providers()
    if into in stores.settings.providers or into == wanted.provider or into in registered:
        raise ConfigError(
            f"{into!r} is a live provider; replay goes into a fresh instance: choose a new name"
        )


def _begun_meanwhile(
    stores: Stores, copy: Instance, what: InstanceDescription, clock: Clock
) -> Instance | None:
    """Return the record of a copy that another command is just making; its lanes come first.

    Raises:
        ConfigError: there is none, and the target is not empty.
    """
    try:
        _check_fresh(stores, copy, what)
    except ConfigError:
        clock.sleep(_MOMENT)
        known = stores.instances.get(copy.name)
        if known is None:
            raise
        return known
    return None


def _check_fresh(stores: Stores, copy: Instance, what: InstanceDescription) -> None:
    """Refuse a target that is not empty.

    Raises:
        ConfigError: it is not empty.
    """
    owner = owner_of(what, copy, stores.instances.look(), stores.settings.provider)
    if owner:
        raise ConfigError(
            f"{shared(copy, owner)}; {remedy(what, copy.name)}; if its options give it one "
            f"already, add --force"
        )
    left = left_of(stores, copy.name)
    if left:
        raise ConfigError(
            f"{copy.name!r} is not empty: {left}; choose a new name, or go on with what is there "
            f"with --force"
        )


def _home(stores: Stores, provider: str) -> Home:
    """Return where the state of a local provider and its copies lies; here if it has no home."""
    return stores.homes.all().get(provider) or find_local_home(stores.settings)


def _instance(stores: Stores, wanted: ReplayRequest, clock: Clock) -> Instance:
    options = normalise_options(wanted.options)
    return Instance(
        name=wanted.into,
        provider=wanted.provider,
        options=options,
        plan=Plan(
            query=stores.history.resolve(wanted.query),
            spans=spans(stores.settings, stores.history, wanted.since, wanted.until),
            rate=wanted.rate or 0.0,
        ),
        made_at=clock.now_ms(),
        made_by=wanted.by,
        reason=wanted.reason,
        asked=CopyRequest(
            query=wanted.query,
            since=_kept(wanted.since),
            until=_kept(wanted.until),
            options=options,
        ),
    )


def _kept(moment: str) -> str:
    return str(moment_of(moment)) if moment else ""


def spans(
    settings: Settings, history: History, since: str, until: str
) -> dict[int, tuple[Span, ...]]:
    """Return the numbers of every partition from one moment to another, "" being either end.

    Raises:
        ConfigError: a moment that nobody can read, or an event that is not there.
    """
    heads = {head.partition: head.n for head in history.log.heads()}
    first = numbers_before(history, since) if since else {}
    last = numbers_upto(history, until) if until else heads
    return {
        p: (Span(first.get(p, 0) + 1, min(last.get(p, 0), heads.get(p, 0))),)
        for p in range(settings.partitions)
    }


def _resumed(known: Instance, asked: Instance, wanted: ReplayRequest) -> Instance:
    """Return the record that is there, if it is of the same replay, with the rate that is asked.

    Raises:
        ConfigError: it is another's.
    """
    advice = f"choose another name, or drop it: memorybus replay --cancel {known.name} --execute"
    if known.purpose != "replay":
        raise ConfigError(f"{known.name!r} is a copy that a {known.purpose} made; {advice}")
    if known.dropped:
        raise ConfigError(f"{known.name!r} is being removed; wait for it, or choose another name")
    if known.asked is None or (known.provider, known.asked) != (asked.provider, asked.asked):
        raise ConfigError(f"{known.name!r} is a copy with another plan; {advice}")
    return known if wanted.rate is None else _paced(known, wanted.rate)


def _paced(known: Instance, rate: float) -> Instance:
    plan = msgspec.structs.replace(known.plan, rate=rate)
    return msgspec.structs.replace(known, plan=plan)


def begin(stores: Stores, plan: Planned, wanted: ReplayRequest) -> Planned:
    """Make the copy known, or its new rate; every worker of its provider fills it from now on.

    Returns:
        The plan; that of the copy which the same command made meanwhile, if one did.

    Raises:
        ConfigError: a copy of that name with another plan was made meanwhile.
        LogUnavailable: Redis is away.
    """
    if plan.known:
        _pace(stores, plan.instance)
        return plan
    if plan.home is not None:
        home = plan.home if plan.home.place else local_home(stores.settings)
        stores.homes.move(plan.instance.name, home)  # before it is served anywhere
    try:
        stores.make(plan.instance)
    except ConfigError:
        made = stores.instances.get(plan.instance.name)
        if made is None:
            raise
        there = _resumed(made, plan.instance, wanted)
        _pace(stores, there)
        return msgspec.structs.replace(plan, instance=there, known=True)
    return plan


def _pace(stores: Stores, copy: Instance) -> None:
    """Write a copy's rate; the workers that fill it keep to it from then on."""
    while (known := stores.instances.get(copy.name)) is not None:
        now = _paced(known, copy.plan.rate)
        if now == known or stores.instances.change(known, now):
            return
