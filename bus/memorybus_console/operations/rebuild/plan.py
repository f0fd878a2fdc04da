"""Plans a rebuild: which generation it makes, and from which part of the history."""

from typing import Any, Literal

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ConfigError
from memorybus.processes.commands import describe_instance
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.instances import (
    CopyRequest,
    Instance,
    InstancesView,
    Live,
    live_name,
    normalise_options,
)

from memorybus_console.operations.catching_up import PartitionNumbers, read_heads
from memorybus_console.operations.copies.freshness import (
    describe_remedy,
    describe_shared_state,
    find_free_name,
    owner_of,
)
from memorybus_console.operations.copies.generations import (
    check_same_request,
    join_exclusions,
    must_equal,
    needs_only_finish,
    plan_without_end,
    plan_without_interval,
    unfinished_copy,
)
from memorybus_console.operations.known_providers import check_provider
from memorybus_console.operations.moments import moment_of, numbers_upto
from memorybus_console.operations.stores import Stores


class RebuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a rebuild; everything else is as in the live instance's plan and options.

    Attributes:
        provider: the provider whose state is built again.
        query: selects the events that are left out.
        until: the last moment of the past that is taken; "" for all of it.
        whole: whether to take the whole history, including what the live instance leaves out.
        options: the options in which the generation differs from the provider.
        verify: whether the new state must equal the live one, where the two can be compared.
        reason: why it is built again.
        by: who asks for it.
    """

    provider: str
    query: Query = EVERYTHING
    until: str = ""
    whole: bool = False
    options: dict[str, Any] = {}
    verify: bool = True
    reason: str = ""
    by: str = ""


class RebuildPlan(msgspec.Struct, frozen=True):
    """A rebuild that could begin or continue.

    Attributes:
        instance: the new generation's record, as it is or would be.
        live: the instance that serves now.
        known: whether the generation was begun already.
        swapped: whether it is live already, and only the end of the swap is missing.
        compared: whether the new state must equal the live one.
        kept: what it inherits from the live instance: the choice of events (``history``), or
            options.
        served: whether a live worker serves the provider.
    """

    instance: Instance
    live: str
    known: bool
    swapped: bool
    compared: bool
    kept: tuple[Literal["history", "options"], ...]
    served: bool


def plan_rebuild(stores: Stores, wanted: RebuildRequest, clock: Clock) -> RebuildPlan:
    """Return what a rebuild would do; change nothing.

    Raises:
        ConfigError: the provider or the moment is unknown, the generation would share another's
            state, or another rebuild is not finished.
        LogError, ArchiveError: the history cannot be read.
    """
    provider = wanted.provider
    check_provider(stores, provider)
    view = stores.instances.read_view()
    live = live_name(provider, view.live)
    heads = read_heads(stores)
    serves = view.all.get(live, Instance(name=live, provider=provider))
    asked = _build_record(
        stores, wanted, serves, find_free_name(stores, provider, view), heads, clock
    )
    done = needs_only_finish(asked, view)
    known = serves if done else unfinished_copy(provider, "rebuild", view)
    if known is None:
        _check_own_state(stores, asked, view)
    elif not done:
        check_same_request(known, asked, f"memorybus rebuild --drop {provider} --execute")
    instance = known or asked
    return RebuildPlan(
        instance=instance,
        live=live,
        known=known is not None,
        swapped=done,
        compared=wanted.verify and must_equal(instance, serves),
        kept=_inherited_parts(wanted, serves),
        served=provider in stores.roster.job_providers(),
    )


def _check_own_state(stores: Stores, asked: Instance, view: InstancesView) -> None:
    """Make sure that a copy would have a state of its own.

    Raises:
        ConfigError: it would write into the state of another instance.
    """
    what = describe_instance(stores.settings, asked.provider, asked.name, asked.options)
    owner = owner_of(what, asked, view, stores.settings.provider)
    if owner:
        raise ConfigError(
            f"{describe_shared_state(asked, owner)}; {describe_remedy(what, asked.name)}"
        )


def _build_record(
    stores: Stores,
    wanted: RebuildRequest,
    live: Instance,
    name: str,
    heads: PartitionNumbers,
    clock: Clock,
) -> Instance:
    """Return the record for a request: the live instance's, with the changes of the request."""
    options = normalise_options(wanted.options)
    return Instance(
        name=name,
        provider=wanted.provider,
        options=live.options | options,
        plan=_build_plan(stores, wanted, live, heads),
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


def _inherited_parts(
    wanted: RebuildRequest, live: Instance
) -> tuple[Literal["history", "options"], ...]:
    history = not wanted.whole and plan_without_end(live.plan) != WHOLE
    options = live.options.keys() - wanted.options.keys()
    return (*(("history",) if history else ()), *(("options",) if options else ()))


def _build_plan(
    stores: Stores, wanted: RebuildRequest, live: Instance, heads: PartitionNumbers
) -> Plan:
    """Return the plan; what the live instance left out stays out unless `whole` is requested."""
    before = WHOLE if wanted.whole else plan_without_end(live.plan)
    plan = Plan(query=join_exclusions(before.query, wanted.query), spans=before.spans)
    if not wanted.until:
        return plan
    then = numbers_upto(stores.history, wanted.until)
    return plan_without_interval(plan, then, heads, stores.settings.partitions)


def rollback_target(stores: Stores, provider: str) -> str:
    """Return the instance that a rollback would make live again.

    Raises:
        ConfigError: there is none.
    """
    check_provider(stores, provider)
    known: Live | None = stores.instances.live().get(provider)
    if known is None or not known.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    # If the command of a rollback was killed after its swap, only the rest of it is missing.
    is_back = known.leaving and known.back
    return known.instance if is_back else known.previous
