"""What a rebuild would do: which generation, of what part of the history, and whether it can be."""

from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.copies import Copies
from memorybus.described import Described
from memorybus.errors import ConfigError
from memorybus.instances import Instance, Live, live_name
from memorybus.plan import Plan
from memorybus.query import EVERYTHING, Query
from memorybus.surfaces.children import described
from memorybus.surfaces.counting import Counted, Taking, Tell, counted
from memorybus.surfaces.generations import (
    Numbers,
    check_same,
    comparable,
    next_name,
    spans_until,
    unended,
    unfinished,
)
from memorybus.surfaces.known_providers import check_provider
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
        compared: whether the new state must equal the live one.
        served: whether a live worker serves the provider.
        counted: what it takes of the history, and what it leaves out; None if nobody asked.
    """

    instance: Instance
    live: str
    known: bool
    swapped: bool
    compared: bool
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
    done = unended(provider, sight)
    heads = {head.partition: head.n for head in desk.history.log.heads()}
    asked = _asked(desk, wanted, next_name(provider, sight), heads, clock)
    known = sight.all.get(done) if done else unfinished(provider, "rebuild", sight)
    what = None
    if known is not None and not done:
        check_same(known, asked, f"memorybus rebuild --drop {provider} --execute")
    elif not done:
        what = _fresh(desk, wanted, asked.name)
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
        swapped=bool(done),
        compared=wanted.verify and comparable(instance.plan, instance.options),
        served=provider in desk.roster.serving_jobs(),
        counted=found,
    )


def _fresh(desk: Copies, wanted: Wanted, name: str) -> Described:
    """Return what a copy would be, which would have a state of its own.

    Raises:
        ConfigError: it would write where the live one does.
    """
    what = described(desk.settings, wanted.provider, name, wanted.options)
    if what.fresh or (wanted.options and not what.fresh_options):
        return what
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
    check_provider(desk, provider)
    known: Live | None = desk.instances.live().get(provider)
    if known is None or not known.previous:
        raise ConfigError(f"nothing to roll back to: no generation before {provider}'s is kept")
    return known.previous
