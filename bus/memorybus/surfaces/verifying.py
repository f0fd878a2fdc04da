"""``memorybus verify``: is the live state what the history says? By digest, or event by event."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.copies import Copies
from memorybus.errors import MemoryBusError
from memorybus.events import Omitted
from memorybus.inspect_jobs import Sent
from memorybus.instances import Instance, live_name
from memorybus.logged import LoggedEvent
from memorybus.plan import Plan, Span
from memorybus.surfaces.agreeing import agree
from memorybus.surfaces.barrier import parked
from memorybus.surfaces.comparing import NAMED, Compared
from memorybus.surfaces.copying import mark_dropped
from memorybus.surfaces.generations import behind, next_name, opened
from memorybus.surfaces.known_providers import check_provider
from memorybus.surfaces.moments import numbers_upto
from memorybus.surfaces.rebuilding import Rebuilder

PAGE = 500
"""Events that are asked for at once."""


class CannotVerify(MemoryBusError):
    """The provider gives no digest, and cannot be asked for events."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be verified.

    Attributes:
        provider: whose live state.
        until: compare with the state of that moment; "" for now.
        sample: ask for this many events at most, spread over the history; 0 for all of them.
        by: who asks.
    """

    provider: str
    until: str = ""
    sample: int = 0
    by: str = ""


class Verified(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        provider: whose state.
        live: the instance that was looked into.
        how: ``digest``: compared with a copy that was filled from the history; ``events``: asked
            for events by their ids.
        ok: whether nothing differs or is missing.
        compared: the keys of the digests; None for ``events``.
        asked: events that were asked for.
        missing: how many of them are not there.
        named: the first of those.
        parked: events that were put aside: these are not there, and waited for.
    """

    provider: str
    live: str
    how: str
    ok: bool
    compared: Compared | None = None
    asked: int = 0
    missing: int = 0
    named: tuple[str, ...] = ()
    parked: int = 0


def verify(work: Rebuilder, wanted: Wanted, clock: Clock = SYSTEM) -> Verified:
    """Compare the live state with the history.

    Raises:
        CannotVerify: the provider offers no way to.
        Stalled: lanes do not come to where they should.
        ConfigError: nobody knows the provider, or the moment.
        InspectionFailed, LogError, ArchiveError: something cannot be read.
    """
    provider = wanted.provider
    check_provider(work.desk, provider)
    live = live_name(provider, work.desk.instances.live())
    if work.inspector.digest(provider, live).given:
        return _by_digest(work, wanted, live, clock)
    if work.inspector.known(provider, live, ()).given:
        return _by_events(work, wanted, live)
    raise CannotVerify(
        f"{provider} gives no digest and cannot be asked for events by their ids: what it holds "
        f"cannot be compared with the history; memorybus diff shows what two generations recall"
    )


# -- by digest ------------------------------------------------------------------------------------


def _by_digest(work: Rebuilder, wanted: Wanted, live: str, clock: Clock) -> Verified:
    provider, desk = wanted.provider, work.desk
    for name in _left_over(desk, provider):
        mark_dropped(desk, name)
    copy = _copy(desk, wanted, live, clock)
    barrier = work.barrier(provider, copy.name, wanted.by)
    try:
        work.add(copy)
        if wanted.until:
            ends = copy.plan.ends(desk.settings.partitions)
            barrier.await_none(
                lambda: behind(barrier.numbers(copy.name), ends),
                f"{copy.name} is not filled; does a worker serve {provider}?",
            )
        else:
            work.fill(barrier, copy.name, provider)
        one = work.comparison(provider, live, copy.name)
        found = one.now() if wanted.until else agree(one, barrier, clock)
    finally:
        barrier.let_go(live)
        mark_dropped(desk, copy.name)
        barrier.let_go(copy.name)
    aside = parked(desk.lanes.states(live))
    return Verified(provider, live, "digest", found.same, found, parked=aside)


def _left_over(desk: Copies, provider: str) -> list[str]:
    """Return the copies of verifications that were killed."""
    copies = desk.instances.all().values()
    return [one.name for one in copies if (one.provider, one.purpose) == (provider, "verify")]


def _copy(desk: Copies, wanted: Wanted, live: str, clock: Clock) -> Instance:
    """Return the record of a copy that takes what the live one took."""
    sight = desk.instances.look()
    known = sight.all.get(live, Instance(name=live, provider=wanted.provider))
    plan = opened(known.plan)
    if wanted.until:
        plan = _until(plan, numbers_upto(desk.history, wanted.until), desk.settings.partitions)
    return Instance(
        name=next_name(wanted.provider, sight, "verify"),
        provider=wanted.provider,
        options=known.options,
        plan=plan,
        purpose="verify",
        made_at=clock.now_ms(),
        made_by=wanted.by,
    )


def _until(plan: Plan, then: dict[int, int], partitions: int) -> Plan:
    spans = {p: (Span(1, then.get(p, 0)),) for p in range(partitions)}
    return msgspec.structs.replace(plan, spans=spans)


# -- event by event -------------------------------------------------------------------------------


def _by_events(work: Rebuilder, wanted: Wanted, live: str) -> Verified:
    provider, desk = wanted.provider, work.desk
    lanes = desk.lanes.states(live)
    plan = desk.instances.all().get(live, Instance(name=live, provider=provider)).plan
    upto = {p: lane.n for p, lane in enumerate(lanes)}
    if wanted.until:
        then = numbers_upto(desk.history, wanted.until)
        upto = {p: min(n, then.get(p, 0)) for p, n in upto.items()}
    stride = max(1, sum(upto.values()) // wanted.sample) if wanted.sample else 1
    there, missing = 0, list[str]()
    events = _events(desk, plan, upto, stride)
    while page := list(islice(events, PAGE)):
        while page:
            found = work.inspector.known(provider, live, page)
            there += found.there
            missing += found.missing
            page = page[len(page) - found.unasked :]
    aside = parked(lanes)
    ok = len(missing) <= aside
    asked = there + len(missing)
    named = tuple(missing[:NAMED])
    return Verified(provider, live, "events", ok, None, asked, len(missing), named, aside)


def _events(desk: Copies, plan: Plan, upto: dict[int, int], stride: int) -> Iterator[Sent]:
    spans = {p: (Span(1, n),) for p, n in upto.items()}
    number = 0
    for event in desk.history.scan(plan.query, plan=Plan(spans=spans)):
        where = event.position
        if isinstance(event.envelope.event, Omitted) or not plan.takes(where.partition, where.n):
            continue
        number += 1
        if number % stride == 0:
            yield _sent(event)


def _sent(event: LoggedEvent) -> Sent:
    one, where = event.envelope, event.position
    kind = type(one.event).__name__
    return Sent(one.id, kind, where.partition, where.entry, where.n, one.at, one.scope, one.session)
