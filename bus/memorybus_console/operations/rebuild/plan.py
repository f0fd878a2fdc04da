"""Plans a rebuild: which generation it makes, and from which part of the history."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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

from memorybus_console.operations.copies.generations import (
    check_same_request,
    describe_remedy,
    describe_shared_state,
    find_free_name,
    join_exclusions,
    must_equal,
    needs_only_finish,
    owner_of,
    plan_without_end,
    plan_without_interval,
    unfinished_copy,
)
from memorybus_console.operations.moments import (
    PartitionNumbers,
    moment_of,
    moment_text,
    numbers_upto,
    read_heads,
)
from memorybus_console.operations.stores import Stores, check_provider
from memorybus_console.result import Remark, Result


@dataclass(frozen=True, kw_only=True)
class RebuildRequest:
    """What a rebuild changes; everything else is as in the live instance's plan and options.

    Attributes:
        whole: whether to take the whole history, including what the live instance leaves out.
        verify: whether the new state must equal the live one, where the two can be compared.
    """

    provider: str  # the provider whose state is built again
    query: Query = EVERYTHING  # selects the events that are left out
    until: str = ""  # the last moment of the past that is taken; "" for all of it
    whole: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    verify: bool = True
    reason: str = ""  # why it is built again


_KEPT = {
    "history": "what {live} leaves out stays out (--whole takes all)",
    "options": "the options of {live} stay (--set changes one)",
}


def _describe_span(plan: Plan) -> str:
    if any(len(spans) > 1 for spans in plan.spans.values()):
        return "up to a moment, and from a later one on"
    return "from a moment on" if plan.spans else "all"


def describe_exceptions(query: Query) -> str:
    """Return in words what a query leaves out; "" for nothing."""
    groups = (
        ("sessions", query.except_sessions),
        ("users", query.except_users),
        ("agents", query.except_agents),
        ("origins", query.except_origins),
    )
    texts = [f"{name} {', '.join(words)}" for name, words in groups if words]
    return f", without {'; '.join(texts)}, now and in future" if texts else ""


def describe_unserved(provider: str) -> str:
    """Return the message that no worker would fill a generation of a provider."""
    return (
        f"no live worker serves {provider} with recalls, and workers fill and compare: start one, "
        f"memorybus up (or memorybus worker), then the same command again"
    )


class RebuildPlan(Result, frozen=True):
    """A rebuild that could begin or continue.

    Attributes:
        instance: the new generation's record, as it is or would be.
        known: whether the generation was begun already.
        swapped: whether it is live already, and only the end of the swap is missing.
        compared: whether the new state must equal the live one, by their digests.
        kept: what it inherits from the live instance: the choice of events (``history``), or
            options.
    """

    instance: Instance
    live: str
    known: bool
    swapped: bool
    compared: bool
    kept: tuple[Literal["history", "options"], ...]
    served: bool

    def facts(self) -> dict[str, str]:
        instance = self.instance
        step = (
            "serves already; its end is missing" if self.swapped else "continues where it stopped"
        )
        facts = {
            "generation": f"{instance.name}, beside {self.live}",
            "begins": step if self.known else "from an empty state",
            "history": _describe_span(instance.plan) + describe_exceptions(instance.plan.query),
            "options": ", ".join(f"{k}={v}" for k, v in instance.options.items()) or "as they are",
            "compared": "by digest with the live one" if self.compared else "by counts only",
        }
        if instance.asked is not None and instance.asked.until:
            facts["until"] = moment_text(instance.asked.until)
        if self.kept:
            facts["kept"] = "; ".join(_KEPT[what] for what in self.kept).format(live=self.live)
        return facts

    def notes(self) -> Iterator[Remark]:
        if not self.served:
            yield Remark(describe_unserved(self.instance.provider), "yellow")

    def is_plan(self) -> bool:
        return True


def plan_rebuild(
    stores: Stores, request: RebuildRequest, clock: Clock, by: str = ""
) -> RebuildPlan:
    """Return what a rebuild would do; change nothing.

    Raises:
        ConfigError: the provider or the moment is unknown, the generation would share another's
            state, or another rebuild is not finished.
    """
    provider = request.provider
    check_provider(stores, provider)
    view = stores.instances.read_view()
    live = live_name(provider, view.live)
    heads = read_heads(stores)
    serves = view.all.get(live, Instance(name=live, provider=provider))
    asked = _build_record(
        stores, request, serves, find_free_name(stores, provider, view), heads, clock, by
    )
    done = needs_only_finish(asked, view)
    record = serves if done else unfinished_copy(provider, "rebuild", view)
    if record is None:
        _check_own_state(stores, asked, view)
    elif not done:
        check_same_request(record, asked, f"memorybus rebuild --drop {provider} --yes")
    instance = record or asked
    return RebuildPlan(
        instance=instance,
        live=live,
        known=record is not None,
        swapped=done,
        compared=request.verify and must_equal(instance, serves) and _has_digests(stores, provider),
        kept=_inherited_parts(request, serves),
        served=provider in stores.roster.job_providers(),
    )


def _has_digests(stores: Stores, provider: str) -> bool:
    """Return whether two states of a provider can be compared; yes, if no worker ever served it."""
    info = stores.roster.providers().get(provider)
    return info is None or info.digests


def _check_own_state(stores: Stores, asked: Instance, view: InstancesView) -> None:
    what = describe_instance(stores.settings, asked.provider, asked.name, asked.options)
    owner = owner_of(what, asked, view, stores.settings.provider)
    if owner:
        raise ConfigError(
            f"{describe_shared_state(asked, owner)}; {describe_remedy(what, asked.name)}"
        )


def _build_record(
    stores: Stores,
    request: RebuildRequest,
    live: Instance,
    name: str,
    heads: PartitionNumbers,
    clock: Clock,
    by: str,
) -> Instance:
    options = normalise_options(request.options)
    return Instance(
        name=name,
        provider=request.provider,
        options=live.options | options,
        plan=_build_plan(stores, request, live, heads),
        purpose="rebuild",
        made_at=clock.now_ms(),
        made_by=by,
        reason=request.reason,
        asked=CopyRequest(
            query=request.query,
            until=str(moment_of(request.until)) if request.until else "",
            options=options,
            whole=request.whole,
            live=live.name,
        ),
    )


def _inherited_parts(
    request: RebuildRequest, live: Instance
) -> tuple[Literal["history", "options"], ...]:
    history = not request.whole and plan_without_end(live.plan) != WHOLE
    options = live.options.keys() - request.options.keys()
    return (*(("history",) if history else ()), *(("options",) if options else ()))


def _build_plan(
    stores: Stores, request: RebuildRequest, live: Instance, heads: PartitionNumbers
) -> Plan:
    """Return the plan; what the live instance left out stays out unless `whole` is requested."""
    before = WHOLE if request.whole else plan_without_end(live.plan)
    plan = Plan(query=join_exclusions(before.query, request.query), spans=before.spans)
    if not request.until:
        return plan
    then = numbers_upto(stores.history, request.until)
    return plan_without_interval(plan, then, heads, stores.settings.partitions)


def rollback_target(stores: Stores, provider: str) -> str:
    """Return the instance that a rollback would make live again.

    Raises:
        ConfigError: there is none.
    """
    check_provider(stores, provider)
    live: Live | None = stores.instances.live().get(provider)
    if live is None or not live.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    # If the command of a rollback was killed after its swap, only the rest of it is missing.
    is_back = live.leaving and live.back
    return live.instance if is_back else live.previous
