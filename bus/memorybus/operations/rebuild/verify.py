"""``memorybus verify``: is the live state what the history says? By digest, or event by event."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import MemoryBusError
from memorybus.events import DeadLetterResolved, Omitted
from memorybus.jobs.inspect import Sent
from memorybus.log.entry import LoggedEvent
from memorybus.operations.copies.copies import mark_dropped
from memorybus.operations.copies.freshness import free_name, owner_of, shared
from memorybus.operations.copies.generations import behind, opened, past
from memorybus.operations.known_providers import check_provider
from memorybus.operations.moments import numbers_upto
from memorybus.operations.rebuild.agreement import agree
from memorybus.operations.rebuild.barrier import parked
from memorybus.operations.rebuild.compare import NAMED, Compared
from memorybus.operations.rebuild.rebuild import Rebuilder
from memorybus.operations.stores import Copies
from memorybus.processes.commands import described
from memorybus.query.query import Query
from memorybus.query.ranges import Plan, Span
from memorybus.registry.instances import Instance, live_name

PAGE = 500
"""Events that are asked for at once."""


class CannotVerify(MemoryBusError):
    """No copy can be compared with the live state, nor can that be asked for events."""


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
        missing: how many of them are lost: neither there nor parked, nor discarded by an operator.
        named: the first of those.
        parked: events that were put aside, for ``events`` of those asked for: these are not there,
            and waited for.
        discarded: how many of those asked for an operator gave up for this instance.
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
    discarded: int = 0


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
    why = f"{provider} gives no digest"
    if work.inspector.digest(provider, live).given:
        copy = _copy(work.desk, wanted, live, clock)
        why = _unfit(work.desk, copy)
        if not why:
            return _by_digest(work, wanted, live, copy, clock)
    if work.inspector.known(provider, live, ()).given:
        return _by_events(work, wanted, live)
    raise CannotVerify(
        f"{why}; and it cannot be asked for events by their ids: what it holds cannot be compared "
        f"with the history; memorybus diff shows what two generations or copies recall"
    )


# -- by digest ------------------------------------------------------------------------------------


def _unfit(desk: Copies, copy: Instance) -> str:
    """Return why no copy may be filled: it would write into a state that is there; "" if it may."""
    what = described(desk.settings, copy.provider, copy.name, copy.options)
    owner = owner_of(what, copy, desk.instances.look(), desk.settings.provider)
    return shared(copy, owner) if owner else ""


def _by_digest(
    work: Rebuilder, wanted: Wanted, live: str, copy: Instance, clock: Clock
) -> Verified:
    provider, desk = wanted.provider, work.desk
    for name in _left_over(desk, provider):
        mark_dropped(desk, name)
    barrier = work.barrier(provider, copy.name, wanted.by)
    if not wanted.until:
        barrier.check_goes_on(live)
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
        plan = past(plan, numbers_upto(desk.history, wanted.until), desk.settings.partitions)
    return Instance(
        name=free_name(desk, wanted.provider, sight, "verify"),
        provider=wanted.provider,
        options=known.options,
        plan=plan,
        purpose="verify",
        made_at=clock.now_ms(),
        made_by=wanted.by,
    )


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
    aside = _aside(desk, live)  # after its lanes: what they passed is applied, or here
    there, waiting, missing = 0, 0, list[str]()
    events = _events(desk, plan, upto, stride)
    while page := list(islice(events, PAGE)):
        while page:
            found = work.inspector.known(provider, live, page)
            there += found.there
            waiting += sum(one in aside for one in found.missing)
            missing += (one for one in found.missing if one not in aside)
            page = page[len(page) - found.unasked :]
    given_up = _discarded(desk, live) if missing else set()
    lost = [one for one in missing if one not in given_up]
    return Verified(
        provider,
        live,
        how="events",
        ok=not lost,
        asked=there + waiting + len(missing),
        missing=len(lost),
        named=tuple(lost[:NAMED]),
        parked=waiting,
        discarded=len(missing) - len(lost),
    )


def _aside(desk: Copies, live: str) -> set[str]:
    """Return the ids of the events that an instance put aside."""
    letters = DeadLetters(desk.settings)
    try:
        return {dead.stored.letter.event_id for dead in letters.letters([live])}
    finally:
        letters.close()


def _discarded(desk: Copies, live: str) -> set[str]:
    """Return the ids of the events that operators gave up for an instance."""
    decided = desk.history.scan(Query(types=(DeadLetterResolved.__name__,)))
    events = (one.envelope.event for one in decided)
    return {
        one.event_id
        for one in events
        if isinstance(one, DeadLetterResolved) and (one.provider, one.action) == (live, "discard")
    }


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
