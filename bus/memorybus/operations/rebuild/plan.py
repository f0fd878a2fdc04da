"""What a rebuild would do: which generation, of what part of the history, and whether it can be."""

from typing import Any, Literal

import msgspec

from memorybus.clock import Clock
from memorybus.errors import ConfigError
from memorybus.operations.copies.counting import Counted, Taking, Tell, counted
from memorybus.operations.copies.exclusions import joined
from memorybus.operations.copies.freshness import free_name, owner_of, remedy, shared
from memorybus.operations.copies.generations import (
    Numbers,
    check_same,
    comparable,
    only_ends,
    opened,
    unfinished,
    until,
)
from memorybus.operations.known_providers import check_provider
from memorybus.operations.moments import moment_of, numbers_upto
from memorybus.operations.stores import Copies
from memorybus.processes.commands import described
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.description import Described
from memorybus.registry.instances import Instance, Live, Sight, live_name
from memorybus.registry.request import Asked, as_kept


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild is asked to do, beside what the live one's plan and options say already.

    Attributes:
        provider: whose state is built again.
        query: which events are left out.
        until: the last moment of the past that is taken; "" for all of it.
        whole: take the whole history, also what the live one leaves out.
        options: what differs from the provider's.
        verify: whether the new state must equal the live one, where it can be compared.
        reason: why.
        by: who.
    """

    provider: str
    query: Query = EVERYTHING
    until: str = ""
    whole: bool = False
    options: dict[str, Any] = {}
    verify: bool = True
    reason: str = ""
    by: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """A rebuild that could begin, or go on.

    Attributes:
        instance: the new generation's record, as it is or would be.
        live: the instance that serves now.
        known: whether it was begun already.
        swapped: whether it serves already, and only the end is missing.
        compared: whether the new state must equal the live one.
        kept: what is taken over of the live one: what it leaves out (``history``), its options.
        served: whether a live worker serves the provider.
        counted: what it takes of the history, and what it leaves out; None if nobody asked.
    """

    instance: Instance
    live: str
    known: bool
    swapped: bool
    compared: bool
    kept: tuple[Literal["history", "options"], ...]
    served: bool
    counted: Counted | None = None


def prepare(desk: Copies, wanted: Wanted, clock: Clock, tell: Tell | None = None) -> Prepared:
    """Return what a rebuild would do; change nothing.

    Args:
        desk: the stores.
        wanted: what is asked.
        clock: time.
        tell: if given, what the rebuild takes is counted, and this told how many events are read.

    Raises:
        ConfigError: it cannot be: nobody knows the provider, a copy would not be fresh, another
            rebuild is not finished, or nobody knows the moment.
        LogError, ArchiveError: the history cannot be read.
    """
    provider = wanted.provider
    check_provider(desk, provider)
    sight = desk.instances.look()
    live = live_name(provider, sight.live)
    heads = {head.partition: head.n for head in desk.history.log.heads()}
    serves = sight.all.get(live, Instance(name=live, provider=provider))
    asked = _asked(desk, wanted, serves, free_name(desk, provider, sight), heads, clock)
    done = only_ends(asked, sight)
    known = serves if done else unfinished(provider, "rebuild", sight)
    what = None
    if known is not None and not done:
        check_same(known, asked, f"memorybus rebuild --drop {provider} --execute")
    elif not done:
        what = _fresh(desk, asked, sight)
    instance = known or asked
    found = None
    if tell is not None:
        what = what or described(desk.settings, provider, instance.name, instance.options)
        found = counted(
            desk, Taking(provider, what, instance.plan, heads, by_option=True), tell, clock
        )
    return Prepared(
        instance=instance,
        live=live,
        known=known is not None,
        swapped=done,
        compared=wanted.verify and comparable(instance, serves),
        kept=_kept(wanted, serves),
        served=provider in desk.roster.serving_jobs(),
        counted=found,
    )


def _fresh(desk: Copies, asked: Instance, sight: Sight) -> Described:
    """Return what a copy would be, which would have a state of its own.

    Raises:
        ConfigError: it would write where another instance does.
    """
    what = described(desk.settings, asked.provider, asked.name, asked.options)
    owner = owner_of(what, asked, sight, desk.settings.provider)
    if owner:
        raise ConfigError(f"{shared(asked, owner)}; {remedy(what, asked.name)}")
    return what


def _asked(
    desk: Copies, wanted: Wanted, live: Instance, name: str, heads: Numbers, clock: Clock
) -> Instance:
    """Return the record of what is asked: made as the live one is, but for what is told."""
    options = as_kept(wanted.options)
    return Instance(
        name=name,
        provider=wanted.provider,
        options=live.options | options,
        plan=_plan(desk, wanted, live, heads),
        purpose="rebuild",
        made_at=clock.now_ms(),
        made_by=wanted.by,
        reason=wanted.reason,
        asked=Asked(
            query=wanted.query,
            until=str(moment_of(wanted.until)) if wanted.until else "",
            options=options,
            whole=wanted.whole,
            live=live.name,
        ),
    )


def _kept(wanted: Wanted, live: Instance) -> tuple[Literal["history", "options"], ...]:
    history = not wanted.whole and opened(live.plan) != WHOLE
    options = live.options.keys() - wanted.options.keys()
    return (*(("history",) if history else ()), *(("options",) if options else ()))


def _plan(desk: Copies, wanted: Wanted, live: Instance, heads: Numbers) -> Plan:
    """Return what is taken: what the live one left out stays out, unless all is wanted again."""
    before = WHOLE if wanted.whole else opened(live.plan)
    plan = Plan(query=joined(before.query, wanted.query), spans=before.spans)
    if not wanted.until:
        return plan
    then = numbers_upto(desk.history, wanted.until)
    return until(plan, then, heads, desk.settings.partitions)


def rolled_back_to(desk: Copies, provider: str) -> str:
    """Return the instance that a rollback would let serve again.

    Raises:
        ConfigError: there is none.
    """
    check_provider(desk, provider)
    known: Live | None = desk.instances.live().get(provider)
    if known is None or not known.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    is_back = known.leaving and known.back  # its command was killed: only the end is missing
    return known.instance if is_back else known.previous
