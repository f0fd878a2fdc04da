"""``memorybus verify`` compares the live state with the history, by digest or event by event."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import MemoryBusError
from memorybus.events import DeadLetterResolved, Omitted
from memorybus.jobs.inspect import SentEvent
from memorybus.log.entry import LoggedEvent
from memorybus.operations.copies.copies import mark_dropped
from memorybus.operations.copies.freshness import free_name, owner_of, shared
from memorybus.operations.copies.generations import behind, opened, past
from memorybus.operations.known_providers import check_provider
from memorybus.operations.moments import numbers_upto
from memorybus.operations.rebuild.comparison import NAMED, Compared, summary
from memorybus.operations.rebuild.pause import LanePause, parked
from memorybus.operations.rebuild.rebuild import Rebuilder
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.query.query import Query
from memorybus.query.ranges import Plan, Span
from memorybus.registry.instances import Instance, live_name

PAGE = 500
"""Events that are asked for at once."""


class CannotVerify(MemoryBusError):
    """Neither can a copy be compared with the live state, nor can that be asked for events."""


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True):
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


def verify(work: Rebuilder, wanted: VerifyRequest, clock: Clock = SYSTEM) -> Verified:
    """Compare the live state with the history.

    Raises:
        CannotVerify: the provider offers no way to.
        LanesStalled: lanes do not come to where they should.
        ConfigError: nobody knows the provider, or the moment.
        InspectionFailed, LogError, ArchiveError: something cannot be read.
    """
    provider = wanted.provider
    check_provider(work.stores, provider)
    live = live_name(provider, work.stores.instances.live())
    why = f"{provider} gives no digest"
    if work.inspector.digest(provider, live).given:
        copy = _copy(work.stores, wanted, live, clock)
        why = _unfit(work.stores, copy)
        if not why:
            return _by_digest(work, wanted, live, copy)
    if work.inspector.check_known(provider, live, ()).given:
        return _by_events(work, wanted, live)
    raise CannotVerify(
        f"{why}; and it cannot be asked for events by their ids: what it holds cannot be compared "
        f"with the history; memorybus diff shows what two generations or copies recall"
    )


# -- by digest ------------------------------------------------------------------------------------


def _unfit(stores: Stores, copy: Instance) -> str:
    """Return why no copy may be filled: it would write into a state that is there; "" if it may."""
    what = describe_instance(stores.settings, copy.provider, copy.name, copy.options)
    owner = owner_of(what, copy, stores.instances.look(), stores.settings.provider)
    return shared(copy, owner) if owner else ""


def _by_digest(work: Rebuilder, wanted: VerifyRequest, live: str, copy: Instance) -> Verified:
    """Fill a copy, compare it with the live state, and drop it."""
    provider, stores = wanted.provider, work.stores
    for name in _left_over(stores, provider):
        mark_dropped(stores, name)
    pause = work.pause(provider, copy.name, wanted.by)
    if not wanted.until:
        pause.check_complete(live)
    try:
        work.add(copy)
        if wanted.until:
            found = _as_of(work, pause, live, copy)
        else:
            found = _as_now(work, pause, live, copy)
    finally:
        pause.release(live)
        mark_dropped(stores, copy.name)
        pause.release(copy.name)
    aside = parked(stores.lanes.states(live))
    return Verified(provider, live, "digest", found.same, found, parked=aside)


def _as_of(work: Rebuilder, pause: LanePause, live: str, copy: Instance) -> Compared:
    """Compare with the state of a moment: the copy ends there by its plan."""
    ends = copy.plan.ends(work.stores.settings.partitions)
    pause.wait_for_none(
        lambda: behind(pause.numbers(copy.name), ends),
        f"{copy.name} is not filled; does a worker serve {copy.provider}?",
    )
    return work.comparison(copy.provider, live, copy.name).now()


def _as_now(work: Rebuilder, pause: LanePause, live: str, copy: Instance) -> Compared:
    """Compare with the state of now; the live lanes pause only if a key differs meanwhile."""
    work.fill(pause, copy.name, copy.provider)
    one = work.comparison(copy.provider, live, copy.name)
    keys, left = work.compared_beside(one, pause)
    if left:
        pause.meet(copy.name, live, copy.provider)
        left = one.again(left)
    return summary(keys, left)


def _left_over(stores: Stores, provider: str) -> list[str]:
    """Return the copies of verifications that were killed."""
    copies = stores.instances.all().values()
    return [one.name for one in copies if (one.provider, one.purpose) == (provider, "verify")]


def _copy(stores: Stores, wanted: VerifyRequest, live: str, clock: Clock) -> Instance:
    """Return the record of a copy that takes what the live one took."""
    sight = stores.instances.look()
    known = sight.all.get(live, Instance(name=live, provider=wanted.provider))
    plan = opened(known.plan)
    if wanted.until:
        plan = past(plan, numbers_upto(stores.history, wanted.until), stores.settings.partitions)
    return Instance(
        name=free_name(stores, wanted.provider, sight, "verify"),
        provider=wanted.provider,
        options=known.options,
        plan=plan,
        purpose="verify",
        made_at=clock.now_ms(),
        made_by=wanted.by,
    )


# -- event by event -------------------------------------------------------------------------------


def _by_events(work: Rebuilder, wanted: VerifyRequest, live: str) -> Verified:
    provider, stores = wanted.provider, work.stores
    lanes = stores.lanes.states(live)
    plan = stores.instances.all().get(live, Instance(name=live, provider=provider)).plan
    upto = {p: lane.n for p, lane in enumerate(lanes)}
    if wanted.until:
        then = numbers_upto(stores.history, wanted.until)
        upto = {p: min(n, then.get(p, 0)) for p, n in upto.items()}
    stride = max(1, sum(upto.values()) // wanted.sample) if wanted.sample else 1
    aside = _aside(stores, live)  # after its lanes: what they passed is applied, or here
    there, waiting, missing = 0, 0, list[str]()
    events = _events(stores, plan, upto, stride)
    while page := list(islice(events, PAGE)):
        while page:
            found = work.inspector.check_known(provider, live, page)
            there += found.there
            waiting += sum(one in aside for one in found.missing)
            missing += (one for one in found.missing if one not in aside)
            page = page[len(page) - found.unasked :]
    given_up = _discarded(stores, live) if missing else set()
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


def _aside(stores: Stores, live: str) -> set[str]:
    """Return the ids of the events that an instance put aside."""
    letters = DeadLetters(stores.settings)
    try:
        return {dead.stored.letter.event_id for dead in letters.letters([live])}
    finally:
        letters.close()


def _discarded(stores: Stores, live: str) -> set[str]:
    """Return the ids of the events that operators gave up for an instance."""
    decided = stores.history.scan(Query(types=(DeadLetterResolved.__name__,)))
    events = (one.envelope.event for one in decided)
    return {
        one.event_id
        for one in events
        if isinstance(one, DeadLetterResolved) and (one.provider, one.action) == (live, "discard")
    }


def _events(stores: Stores, plan: Plan, upto: dict[int, int], stride: int) -> Iterator[SentEvent]:
    spans = {p: (Span(1, n),) for p, n in upto.items()}
    number = 0
    for event in stores.history.scan(plan.query, plan=Plan(spans=spans)):
        where = event.position
        if isinstance(event.envelope.event, Omitted) or not plan.takes(where.partition, where.n):
            continue
        number += 1
        if number % stride == 0:
            yield _sent(event)


def _sent(event: LoggedEvent) -> SentEvent:
    one, where = event.envelope, event.position
    kind = type(one.event).__name__
    return SentEvent(
        one.id, kind, where.partition, where.entry, where.n, one.at, one.scope, one.session
    )
