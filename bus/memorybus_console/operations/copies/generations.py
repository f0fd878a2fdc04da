"""Generations of a provider: which exist, their states, and their plans. Pure.

A generation is a copy that a rebuild made, called ``<provider>@<number>``; the first is the
instance of the settings itself. One generation is live. The one before it is kept, with its lanes
paused, until it is dropped.
"""

import re
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

import msgspec
from memorybus.errors import ConfigError
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

from memorybus_console.operations.catching_up import PartitionNumbers
from memorybus_console.result import TEXT, TIME, Column

_NUMBER = re.compile(r"@(\d+)$")


class Generation(msgspec.Struct, frozen=True):
    """A generation as people see it.

    Attributes:
        name: the instance.
        provider: the provider of which it is a generation.
        state: ``live``, ``kept`` (for a rollback), ``filling``, ``unused`` or ``dropped``.
        query: selects the events that it takes; empty for all.
        until_then: whether it goes back to an earlier time: it lacks the events between that time
            and its making.
        options: the options in which it differs from the provider.
        made_at: when it was made (milliseconds); 0 for the first.
        made_by: who made it.
        reason: why it was made.
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
    copies = [one for one in view.all.values() if is_generation(one) and one.provider == provider]
    return [_generation(one, view) for one in [first, *sorted(copies, key=number_of)]]


def list_generations(view: InstancesView) -> list[Generation]:
    """Return the generations of all providers that have more than one."""
    providers = sorted({one.provider for one in view.all.values()} | set(view.live))
    every = [generations(provider, view) for provider in providers]
    return [one for group in every if len(group) > 1 for one in group if not _is_dropped_first(one)]


def _is_dropped_first(one: Generation) -> bool:
    """Whether a generation is the first one and dropped: only other dropped ones are listed."""
    return one.state == "dropped" and one.name == one.provider


def _generation(one: Instance, view: InstancesView) -> Generation:
    return Generation(
        name=one.name,
        provider=one.provider,
        state=_state(one, view),
        query=one.plan.query,
        until_then=any(len(spans) > 1 for spans in one.plan.spans.values()),
        options=one.options,
        made_at=one.made_at,
        made_by=one.made_by,
        reason=one.reason,
    )


def _state(
    one: Instance, view: InstancesView
) -> Literal["live", "kept", "filling", "unused", "dropped"]:
    known = view.live.get(one.provider)
    if one.dropped:
        return "dropped"
    if live_name(one.provider, view.live) == one.name:
        return "live"
    if known is not None and known.previous == one.name:
        return "kept"
    if is_dropped(one.name, view):
        return "dropped"
    candidate = unfinished_copy(one.provider, "rebuild", view)
    return "filling" if candidate is not None and candidate.name == one.name else "unused"


def provider_of(name: str, view: InstancesView, configured: Sequence[str]) -> str:
    """Return the provider that an instance belongs to; pure.

    Raises:
        ConfigError: there is no such instance, or it was dropped.
    """
    every = {name: Instance(name=name, provider=name) for name in configured} | dict(view.all)
    known = {name: one for name, one in every.items() if not is_dropped(name, view)}
    if name in every and name not in known:
        raise ConfigError(f"{name} was dropped; there are: {', '.join(known)}")
    if name not in known:
        raise ConfigError(f"no instance is called {name!r}; there are: {', '.join(known)}")
    return known[name].provider


def is_dropped(name: str, view: InstancesView) -> bool:
    """Return whether an instance was dropped.

    The record of a dropped copy says so. The first generation stays in the settings, so it is
    paused with the state ``dropped`` instead.
    """
    one, pause, known = view.all.get(name), view.pauses.get(name), view.live.get(name)
    if one is not None and one.dropped:
        return True
    left = known is not None and name not in (known.instance, known.previous)
    return left and pause is not None and pause.state == "dropped"


def is_generation(one: Instance) -> bool:
    """Return whether a copy was made by a rebuild."""
    return one.purpose == "rebuild" and one.is_copy


def number_of(one: Instance) -> int:
    """Return a generation's number, 0 for the instance of the settings."""
    return _number_in(one.name)


def _number_in(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[1]) if found else 0


def next_name(provider: str, view: InstancesView, purpose: Purpose = "rebuild") -> str:
    """Return the name of the next generation, or of a copy to compare with."""
    names = [one.name for one in view.all.values() if one.provider == provider]
    known = view.live.get(provider)
    names += [known.instance, known.previous] if known else []
    numbers = [*map(_number_in, names), known.numbered if known else 0]
    middle = "" if purpose == "rebuild" else f".{purpose}"
    return f"{provider}{middle}@{max(numbers, default=0) + 1}"


def unfinished_copy(provider: str, purpose: Purpose, view: InstancesView) -> Instance | None:
    """Return the newest copy that a command of this purpose has not finished, if there is one."""
    found = [one for one in copies_never_live(provider, purpose, view) if not one.dropped]
    return max(found, key=number_of, default=None)


def copies_never_live(provider: str, purpose: Purpose, view: InstancesView) -> list[Instance]:
    """Return the copies that never served: those newer than the live and the kept generation."""
    known = view.live.get(provider)
    floor = max(_number_in(known.instance), _number_in(known.previous)) if known else 0
    return [
        one
        for one in view.all.values()
        if (one.provider, one.purpose) == (provider, purpose)
        and one.is_copy
        and number_of(one) > floor
    ]


def check_same_request(known: Instance, asked: Instance, drop: str) -> None:
    """Make sure that an unfinished copy was begun with the same request.

    Raises:
        ConfigError: it was begun with another request; `drop` is the command that removes it.
    """
    if known.asked is None or known.asked != asked.asked:
        if known.asked and asked.asked and known.asked.live != asked.asked.live:
            raise ConfigError(
                f"{known.name} was begun beside {known.asked.live}, and {asked.asked.live} serves "
                f"now: it cannot continue; drop it: {drop}"
            )
        raise ConfigError(
            f"{known.name} was begun with another plan and is not finished; give the same options "
            f"to continue, or drop it: {drop}"
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
    """Return a plan that ends at these numbers of the partitions."""
    spans = {p: (*_spans(plan, p)[:-1], _last_span(plan, p, n)) for p, n in at.items()}
    return msgspec.structs.replace(plan, spans=spans)


def plan_without_end(plan: Plan) -> Plan:
    """Return a plan without its end; a plan that then takes everything has no spans."""
    spans = {
        p: (*found[:-1], msgspec.structs.replace(found[-1], last=None))
        for p, found in plan.spans.items()
    }
    whole = all(found == (NumberRange(),) for found in spans.values())
    return msgspec.structs.replace(plan, spans={} if whole else spans)


def _spans(plan: Plan, partition: int) -> Sequence[NumberRange]:
    return plan.spans.get(partition) or (NumberRange(),)


def _last_span(plan: Plan, partition: int, n: int) -> NumberRange:
    return msgspec.structs.replace(_spans(plan, partition)[-1], last=n)


def must_equal(one: Instance, live: Instance) -> bool:
    """Return whether a copy's state must equal the live one's: it has the same options and plan."""
    return (one.options, plan_without_end(one.plan)) == (live.options, plan_without_end(live.plan))


def live_after_swap(
    known: Live, to: str, at: int, by: str, reason: str, *, back: bool = False
) -> Live:
    """Return the entry that makes another instance live, and remembers the one before it."""
    last = known.instance
    return Live(to, last, at, by, reason, leaving=last, back=back, numbered=known.numbered)


def live_after_drop(known: Live, gone: Collection[str]) -> Live:
    """Return the entry after a drop: nobody can roll back to these, or reuse their numbers."""
    return msgspec.structs.replace(
        known,
        previous="" if known.previous in gone else known.previous,
        numbered=max([known.numbered, *map(_number_in, gone)]),
    )


def unfinished_swap(provider: str, view: InstancesView) -> str:
    """Return the live instance if the command that swapped it in was killed; else ""."""
    known = view.live.get(provider)
    return known.instance if known is not None and known.leaving else ""


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
