"""What a rebuild would do: which generation it makes, of which part of the history."""

from typing import Any, Literal

import msgspec

from memorybus.clock import Clock
from memorybus.errors import ConfigError
from memorybus.operations.copies.counting import HistoryCount, Taking, Tell, counted, joined
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
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.description import InstanceDescription
from memorybus.registry.instances import (
    CopyRequest,
    Instance,
    InstancesView,
    Live,
    live_name,
    normalise_options,
)


class RebuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild is asked to do; all else is as the live one's plan and options say.

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
    counted: HistoryCount | None = None


def prepare(
    stores: Stores, wanted: RebuildRequest, clock: Clock, tell: Tell | None = None
) -> Prepared:
    """Return what a rebuild would do; change nothing.

    Args:
        stores: the stores.
        wanted: what is asked.
        clock: time.
        tell: if given, what the rebuild takes is counted; receives how many events are read.

    Raises:
        ConfigError: the provider or the moment is unknown, a copy would not be fresh, or another
            rebuild is not finished.
        LogError, ArchiveError: the history cannot be read.
    """
    provider = wanted.provider
    check_provider(stores, provider)
    sight = stores.instances.look()
    live = live_name(provider, sight.live)
    heads = {head.partition: head.n for head in stores.history.log.heads()}
    serves = sight.all.get(live, Instance(name=live, provider=provider))
    asked = _asked(stores, wanted, serves, free_name(stores, provider, sight), heads, clock)
    done = only_ends(asked, sight)
    known = serves if done else unfinished(provider, "rebuild", sight)
    what = _with_own_state(stores, asked, sight) if known is None else None
    if known is not None and not done:
        check_same(known, asked, f"memorybus rebuild --drop {provider} --execute")
    instance = known or asked
    return Prepared(
        instance=instance,
        live=live,
        known=known is not None,
        swapped=done,
        compared=wanted.verify and comparable(instance, serves),
        kept=_kept(wanted, serves),
        served=provider in stores.roster.job_providers(),
        counted=_counted(stores, instance, what, heads, tell, clock) if tell else None,
    )


def _counted(
    stores: Stores,
    copy: Instance,
    what: InstanceDescription | None,
    heads: Numbers,
    tell: Tell,
    clock: Clock,
) -> HistoryCount:
    """Return what a new generation takes of the history, and what it leaves out."""
    what = what or describe_instance(stores.settings, copy.provider, copy.name, copy.options)
    taking = Taking(copy.provider, what, copy.plan, heads, by_option=True)
    return counted(stores, taking, tell, clock)


def _with_own_state(stores: Stores, asked: Instance, sight: InstancesView) -> InstanceDescription:
    """Return what a copy would be, which would have a state of its own.

    Raises:
        ConfigError: it would write where another instance does.
    """
    what = describe_instance(stores.settings, asked.provider, asked.name, asked.options)
    owner = owner_of(what, asked, sight, stores.settings.provider)
    if owner:
        raise ConfigError(f"{shared(asked, owner)}; {remedy(what, asked.name)}")
    return what


def _asked(
    stores: Stores, wanted: RebuildRequest, live: Instance, name: str, heads: Numbers, clock: Clock
) -> Instance:
    """Return the record of what is asked: as the live one's, but for what the command changes."""
    options = normalise_options(wanted.options)
    return Instance(
        name=name,
        provider=wanted.provider,
        options=live.options | options,
        plan=_plan(stores, wanted, live, heads),
        purpose="rebuild",
        made_at=clock.now_ms(),
        made_by=wanted.by,
        reason=wanted.reason,
        asked=CopyRequest(
            query=wanted.query,
            until=str(moment_of(wanted.until)) if wanted.until else "",
            options=options,
            whole=wanted.whole,
            live=live.name,
        ),
    )


def _kept(wanted: RebuildRequest, live: Instance) -> tuple[Literal["history", "options"], ...]:
    history = not wanted.whole and opened(live.plan) != WHOLE
    options = live.options.keys() - wanted.options.keys()
    return (*(("history",) if history else ()), *(("options",) if options else ()))


def _plan(stores: Stores, wanted: RebuildRequest, live: Instance, heads: Numbers) -> Plan:
    """Return what is taken; what the live one left out stays out unless all is asked for."""
    before = WHOLE if wanted.whole else opened(live.plan)
    plan = Plan(query=joined(before.query, wanted.query), spans=before.spans)
    if not wanted.until:
        return plan
    then = numbers_upto(stores.history, wanted.until)
    return until(plan, then, heads, stores.settings.partitions)


def rolled_back_to(stores: Stores, provider: str) -> str:
    """Return the instance that a rollback would let serve again.

    Raises:
        ConfigError: there is none.
    """
    check_provider(stores, provider)
    known: Live | None = stores.instances.live().get(provider)
    if known is None or not known.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    is_back = known.leaving and known.back  # its command was killed: only the end is missing
    return known.instance if is_back else known.previous
