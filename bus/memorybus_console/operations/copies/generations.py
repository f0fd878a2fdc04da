"""Generations of a provider: which exist, their states, and their plans. Pure.

A generation is a copy that a rebuild made, called ``<provider>@<number>``; the first is the
instance of the settings itself. One generation is live. The one before it is kept, with its lanes
paused, until it is dropped.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal

import msgspec
from memorybus.errors import ConfigError
from memorybus.processes.reports import InstanceDescription
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import NumberRange, Plan
from memorybus.registry.instances import (
    CopyRequest,
    Instance,
    InstancesView,
    Live,
    Purpose,
    live_name,
)

from memorybus_console.operations.moments import PartitionNumbers
from memorybus_console.operations.stores import Stores
from memorybus_console.result import TEXT, TIME, Column

_NUMBER = re.compile(r"@(\d+)$")


class Generation(msgspec.Struct, frozen=True):
    """A generation as people see it.

    Attributes:
        state: ``live``, ``kept`` (for a rollback), ``filling``, ``unused`` or ``dropped``.
        query: selects the events that it takes; empty for all.
        until_then: whether it goes back to an earlier time: it lacks the events between that time
            and its making.
        made_at: when it was made (milliseconds); 0 for the first.
    """

    name: Annotated[str, Column("generation")]
    provider: Annotated[str, Column("of")]
    state: Literal["live", "kept", "filling", "unused", "dropped"]
    query: Annotated[Query, Column("history", wraps=True)] = EVERYTHING
    until_then: Annotated[bool, Column("of an earlier time")] = False
    options: Annotated[dict[str, Any], TEXT] = {}
    made_at: Annotated[int, TIME] = 0
    made_by: Annotated[str, Column("by")] = ""
    reason: Annotated[str, TEXT] = ""


def generations(provider: str, view: InstancesView) -> list[Generation]:
    """Return a provider's generations, the instance of the settings first."""
    first = view.all.get(provider, Instance(name=provider, provider=provider))
    copies = [
        instance
        for instance in view.all.values()
        if is_generation(instance) and instance.provider == provider
    ]
    return [_generation(instance, view) for instance in [first, *sorted(copies, key=number_of)]]


def list_generations(view: InstancesView) -> list[Generation]:
    providers = sorted({instance.provider for instance in view.all.values()} | set(view.live))
    every = [generations(provider, view) for provider in providers]
    return [
        generation
        for group in every
        if len(group) > 1
        for generation in group
        if not _is_dropped_first(generation)
    ]


def _is_dropped_first(generation: Generation) -> bool:
    return generation.state == "dropped" and generation.name == generation.provider


def _generation(instance: Instance, view: InstancesView) -> Generation:
    return Generation(
        name=instance.name,
        provider=instance.provider,
        state=_state(instance, view),
        query=instance.plan.query,
        until_then=any(len(spans) > 1 for spans in instance.plan.spans.values()),
        options=instance.options,
        made_at=instance.made_at,
        made_by=instance.made_by,
        reason=instance.reason,
    )


def _state(
    instance: Instance, view: InstancesView
) -> Literal["live", "kept", "filling", "unused", "dropped"]:
    live = view.live.get(instance.provider)
    if instance.dropped:
        return "dropped"
    if live_name(instance.provider, view.live) == instance.name:
        return "live"
    if live is not None and live.previous == instance.name:
        return "kept"
    if is_dropped(instance.name, view):
        return "dropped"
    candidate = unfinished_copy(instance.provider, "rebuild", view)
    return "filling" if candidate is not None and candidate.name == instance.name else "unused"


def provider_of(name: str, view: InstancesView, configured: Sequence[str]) -> str:
    """Return the provider that an instance belongs to; pure.

    Raises:
        ConfigError: there is no such instance, or it was dropped.
    """
    every = {name: Instance(name=name, provider=name) for name in configured} | dict(view.all)
    instances = {name: instance for name, instance in every.items() if not is_dropped(name, view)}
    if name in every and name not in instances:
        raise ConfigError(f"{name} was dropped; there are: {', '.join(instances)}")
    if name not in instances:
        raise ConfigError(f"no instance is called {name!r}; there are: {', '.join(instances)}")
    return instances[name].provider


def is_dropped(name: str, view: InstancesView) -> bool:
    """Return whether an instance was dropped.

    The record of a dropped copy says so. The first generation stays in the settings, so it is
    paused with the state ``dropped`` instead.
    """
    instance, pause, live = view.all.get(name), view.pauses.get(name), view.live.get(name)
    if instance is not None and instance.dropped:
        return True
    is_past = live is not None and name not in (live.instance, live.previous)
    return is_past and pause is not None and pause.state == "dropped"


def is_generation(instance: Instance) -> bool:
    """Return whether a copy was made by a rebuild."""
    return instance.purpose == "rebuild" and instance.is_copy


def number_of(instance: Instance) -> int:
    """Return a generation's number, 0 for the instance of the settings."""
    return _number_in(instance.name)


def _number_in(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[1]) if match else 0


def next_name(provider: str, view: InstancesView, purpose: Purpose = "rebuild") -> str:
    """Return the name of the next generation, or of a copy to compare with."""
    names = [instance.name for instance in view.all.values() if instance.provider == provider]
    live = view.live.get(provider)
    names += [live.instance, live.previous] if live else []
    numbers = [*map(_number_in, names), live.numbered if live else 0]
    middle = "" if purpose == "rebuild" else f".{purpose}"
    return f"{provider}{middle}@{max(numbers, default=0) + 1}"


def unfinished_copy(provider: str, purpose: Purpose, view: InstancesView) -> Instance | None:
    """Return the newest copy that a command of this purpose has not finished, if there is one."""
    instances = [
        instance for instance in copies_never_live(provider, purpose, view) if not instance.dropped
    ]
    return max(instances, key=number_of, default=None)


def copies_never_live(provider: str, purpose: Purpose, view: InstancesView) -> list[Instance]:
    """Return the copies that never served: those newer than the live and the kept generation."""
    live = view.live.get(provider)
    floor = max(_number_in(live.instance), _number_in(live.previous)) if live else 0
    return [
        instance
        for instance in view.all.values()
        if (instance.provider, instance.purpose) == (provider, purpose)
        and instance.is_copy
        and number_of(instance) > floor
    ]


def check_same_request(instance: Instance, asked: Instance, drop: str) -> None:
    """Make sure that an unfinished copy was begun with the same request.

    Raises:
        ConfigError: it was begun with another request; `drop` is the command that removes it.
    """
    if instance.asked is None or instance.asked != asked.asked:
        if instance.asked and asked.asked and instance.asked.live != asked.asked.live:
            raise ConfigError(
                f"{instance.name} was begun beside {instance.asked.live}, and {asked.asked.live} "
                f"serves now: it cannot continue; drop it: {drop}"
            )
        raise ConfigError(
            f"{instance.name} was begun with another plan and is not finished; give the same "
            f"options to continue, or drop it: {drop}"
        )


def join_exclusions(query: Query, more: Query) -> Query:
    """Return a query that excludes whatever either of two queries excludes."""
    words = {
        field: tuple(dict.fromkeys(getattr(query, field) + getattr(more, field)))
        for field in ("except_sessions", "except_users", "except_agents", "except_origins")
    }
    return msgspec.structs.replace(more, **words)


def plan_without_interval(
    plan: Plan, then: PartitionNumbers, heads: PartitionNumbers, partitions: int
) -> Plan:
    """Return a plan without the events between a moment and now."""
    spans = {
        p: (
            *_spans_up_to(plan, p, min(then.get(p, 0), heads.get(p, 0))),
            NumberRange(heads.get(p, 0) + 1),
        )
        for p in range(partitions)
    }
    return msgspec.structs.replace(plan, spans=spans)


def plan_up_to(plan: Plan, then: PartitionNumbers, partitions: int) -> Plan:
    """Return a plan that takes what another takes, but only up to a moment."""
    spans = {p: _spans_up_to(plan, p, then.get(p, 0)) for p in range(partitions)}
    return msgspec.structs.replace(plan, spans=spans)


def _spans_up_to(plan: Plan, partition: int, n: int) -> tuple[NumberRange, ...]:
    """Return what a plan takes of a partition up to a number, as at least one span."""
    taken = [span for span in _spans(plan, partition) if span.first <= n]
    cut = (NumberRange(s.first, n if s.last is None else min(s.last, n)) for s in taken)
    return tuple(cut) or (NumberRange(1, 0),)


def plan_ending_at(plan: Plan, at: PartitionNumbers) -> Plan:
    spans = {p: (*_spans(plan, p)[:-1], _last_span(plan, p, n)) for p, n in at.items()}
    return msgspec.structs.replace(plan, spans=spans)


def plan_without_end(plan: Plan) -> Plan:
    """Return a plan without its end; a plan that then takes everything has no spans."""
    spans = {
        p: (*ranges[:-1], msgspec.structs.replace(ranges[-1], last=None))
        for p, ranges in plan.spans.items()
    }
    whole = all(ranges == (NumberRange(),) for ranges in spans.values())
    return msgspec.structs.replace(plan, spans={} if whole else spans)


def _spans(plan: Plan, partition: int) -> Sequence[NumberRange]:
    return plan.spans.get(partition) or (NumberRange(),)


def _last_span(plan: Plan, partition: int, n: int) -> NumberRange:
    return msgspec.structs.replace(_spans(plan, partition)[-1], last=n)


def must_equal(instance: Instance, live: Instance) -> bool:
    """Return whether a copy's state must equal the live one's: it has the same options and plan."""
    return (instance.options, plan_without_end(instance.plan)) == (
        live.options,
        plan_without_end(live.plan),
    )


def live_after_swap(
    live: Live, to: str, at: int, by: str, reason: str, *, back: bool = False
) -> Live:
    """Return the entry that makes another instance live, and remembers the one before it."""
    last = live.instance
    return Live(to, last, at, by, reason, leaving=last, back=back, numbered=live.numbered)


def live_after_drop(live: Live, gone: Collection[str]) -> Live:
    """Return the entry after a drop: nobody can roll back to these, or reuse their numbers."""
    return msgspec.structs.replace(
        live,
        previous="" if live.previous in gone else live.previous,
        numbered=max([live.numbered, *map(_number_in, gone)]),
    )


def unfinished_swap(provider: str, view: InstancesView) -> str:
    """Return the live instance if the command that swapped it in was killed; else ""."""
    live = view.live.get(provider)
    return live.instance if live is not None and live.leaving else ""


def command_to_finish_swap(provider: str, view: InstancesView) -> str:
    """Return the command line that only finishes a swap which was cut short."""
    back = "--rollback " if view.live[provider].back else ""
    return f"memorybus rebuild {back}{provider} --yes"


def needs_only_finish(asked: Instance, view: InstancesView) -> bool:
    """Return whether a request needs only to finish a swap which was cut short.

    This is the case if it repeats the request of that swap, or has no options.
    """
    entry = view.live.get(asked.provider)
    if entry is None or not entry.leaving or entry.back or asked.asked is None:
        return False
    serves = view.all.get(entry.instance)
    words = msgspec.structs.replace(asked.asked, live=entry.leaving)
    return serves is not None and words in (serves.asked, CopyRequest(live=entry.leaving))


Tables = Mapping[str, Mapping[str, Any]]
"""The tables of provider options in the settings, by instance."""


def owner_of(what: InstanceDescription, copy: Instance, view: InstancesView, tables: Tables) -> str:
    """Return the instance into whose state a copy would write; "" if it has its own; pure.

    Args:
        view: all instances; a dropped one counts as long as its record exists.
    """
    if what.by_home:
        return ""
    first = Instance(name=copy.provider, provider=copy.provider)
    others = [first] + [
        instance
        for instance in view.all.values()
        if instance.provider == copy.provider and instance.is_copy and instance.name != copy.name
    ]
    mine = place_of(what, copy, tables)
    return next((other.name for other in others if place_of(what, other, tables) == mine), "")


def place_of(what: InstanceDescription, instance: Instance, tables: Tables) -> tuple[str, ...]:
    """Return the values of the options that say where an instance's shared state is; pure."""
    return _place(
        what, {**instance.options, **tables.get(instance.name, {})} if instance.is_copy else {}
    )


def _place(what: InstanceDescription, options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(options.get(option, own)) for option, own in what.place.items())


def describe_place(what: InstanceDescription, instance: Instance, tables: Tables) -> str:
    """Return the options that say where a state is, as they stand on a command line; pure."""
    texts = zip(what.place, place_of(what, instance, tables), strict=True)
    return ", ".join(f"{option}={text}" for option, text in texts)


def describe_shared_state(copy: Instance, owner: str) -> str:
    """Return the message for a copy that would write into another instance's state."""
    return f"a copy of {copy.provider} would write where {owner} does: its state is shared"


def describe_remedy(what: InstanceDescription, name: str) -> str:
    """Return, in words, how a copy called `name` gets a state of its own."""
    options = " or ".join(f"--set {option}=…" for option in what.place if option in what.tunable)
    if not options and what.place:
        listed = " or ".join(f"{option} = …" for option in what.place)
        options = f'[provider."{name}"] with {listed} in the memorybus.toml of its workers'
    if options:
        return f"give it a place that none of its instances has: {options}"
    return (
        "it names no option that says where; add another instance with a place or an account of "
        "its own (memorybus provider setup), compare, and remove this one"
    )


def find_free_name(
    stores: Stores, provider: str, view: InstancesView, purpose: Purpose = "rebuild"
) -> str:
    """Return an unused name for the next generation, or for a copy to compare with.

    Names are also searched on disk: after a loss of Redis, generations that it no longer knows
    may still have files there.
    """
    base, _, first = next_name(provider, view, purpose).rpartition("@")
    names = (f"{base}@{number}" for number in count(int(first)))
    return next(name for name in names if not describe_leftovers(stores, name))


def describe_leftovers(stores: Stores, name: str) -> str:
    """Return, in words, what already exists under an instance's name; "" if nothing does.

    On disk, only this data directory is searched.
    """
    if name in stores.settings.providers or name in stores.roster.providers():
        return "it is a provider of its own"
    lanes = stores.lanes.count_remaining(name)
    if lanes:
        return f"Redis holds {lanes} lanes of it"
    home = stores.settings.provider_home(name)
    return f"{home} holds files" if home.is_dir() and any(home.iterdir()) else ""
