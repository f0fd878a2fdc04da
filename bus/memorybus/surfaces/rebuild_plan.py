"""What a rebuild would do: which generation, of what part of the history, and whether it can be."""

from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.copies import Copies
from memorybus.errors import ConfigError
from memorybus.instances import Instance, Live, live_name
from memorybus.plan import Plan
from memorybus.query import EVERYTHING, Query
from memorybus.surfaces.children import described
from memorybus.surfaces.generations import (
    Numbers,
    check_same,
    comparable,
    next_name,
    spans_until,
    unended,
    unfinished,
)
from memorybus.surfaces.moments import numbers_upto


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild is asked to do.

    Attributes:
        provider: whose state is built again.
        query: which events, if not all.
        until: the last moment of the past that is taken; "" for all of it.
        options: what differs from the provider's.
        verify: whether the new state must equal the live one, where it can be compared.
        reason: why.
        by: who.
    """

    provider: str
    query: Query = EVERYTHING
    until: str = ""
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
        events: how many places the history has.
        taken: how many of them lie in its spans; its query is not counted.
        compared: whether the new state must equal the live one.
        served: whether a live worker serves the provider.
    """

    instance: Instance
    live: str
    known: bool
    swapped: bool
    events: int
    taken: int
    compared: bool
    served: bool


def prepare(desk: Copies, wanted: Wanted, clock: Clock) -> Prepared:
    """Return what a rebuild would do; change nothing.

    Raises:
        ConfigError: it cannot be: nobody knows the provider, a copy would not be fresh, another
            rebuild is not finished, or nobody knows the moment.
        LogError, ArchiveError: the history cannot be read.
    """
    provider = wanted.provider
    check_known(desk, provider)
    sight = desk.instances.look()
    live = live_name(provider, sight.live)
    done = unended(provider, sight)
    heads = {head.partition: head.n for head in desk.history.log.heads()}
    asked = _asked(desk, wanted, next_name(provider, sight), heads, clock)
    known = sight.all.get(done) if done else unfinished(provider, "rebuild", sight)
    if known is not None and not done:
        check_same(known, asked, f"memorybus rebuild --drop {provider} --execute")
    elif not done:
        _check_fresh(desk, wanted, asked.name)
    instance = known or asked
    total = sum(heads.values())
    spans = instance.plan.spans
    later = sum(
        max(0, found[-1].first - 1 - (found[0].last or 0))
        for found in spans.values()
        if len(found) > 1
    )
    return Prepared(
        instance=instance,
        live=live,
        known=known is not None,
        swapped=bool(done),
        events=total,
        taken=total - later,
        compared=wanted.verify and comparable(instance.plan, instance.options),
        served=provider in desk.roster.serving_jobs(),
    )


def check_known(desk: Copies, provider: str) -> None:
    """Make sure that a provider is configured, or was served.

    Raises:
        ConfigError: nobody knows it.
    """
    known = [*desk.settings.providers, *desk.roster.providers()]
    if provider not in known:
        raise ConfigError(
            f"no provider {provider!r} is known; there are: {', '.join(dict.fromkeys(known))}"
        )


def _check_fresh(desk: Copies, wanted: Wanted, name: str) -> None:
    """Make sure that a copy would have a state of its own.

    Raises:
        ConfigError: it would write where the live one does.
    """
    what = described(desk.settings, wanted.provider, name, wanted.options)
    if what.fresh or (wanted.options and not what.fresh_options):
        return
    options = " or ".join(f"--set {option}=…" for option in what.fresh_options)
    raise ConfigError(
        f"{wanted.provider} cannot be rebuilt beside the live one: its state is shared, and a copy "
        f"would write where the live one does; give the copy a place of its own with "
        f"{options or '--set OPTION=VALUE, the option that names where its state is'}"
    )


def _asked(desk: Copies, wanted: Wanted, name: str, heads: Numbers, clock: Clock) -> Instance:
    spans = {}
    if wanted.until:
        then = numbers_upto(desk.history, wanted.until)
        spans = spans_until(then, heads, desk.settings.partitions)
    return Instance(
        name=name,
        provider=wanted.provider,
        options=wanted.options,
        plan=Plan(query=desk.history.resolve(wanted.query), spans=spans),
        purpose="rebuild",
        made_at=clock.now_ms(),
        made_by=wanted.by,
        reason=wanted.reason,
    )


def rolled_back_to(desk: Copies, provider: str) -> str:
    """Return the instance that a rollback would let serve again.

    Raises:
        ConfigError: there is none.
    """
    check_known(desk, provider)
    known: Live | None = desk.instances.live().get(provider)
    if known is None or not known.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    return known.previous
