"""``memorybus verify``: compares the live state with the history, by digest or event by event."""

from collections.abc import Iterator
from itertools import islice

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import MemoryBusError
from memorybus.events import DeadLetterResolved, Omitted
from memorybus.jobs.inspect import SentEvent
from memorybus.log.entry import LoggedEvent
from memorybus.processes.commands import describe_instance
from memorybus.query.query import Query
from memorybus.query.ranges import NumberRange, Plan
from memorybus.registry.instances import Instance, live_name

from memorybus_console.operations.catching_up import count_behind
from memorybus_console.operations.copies.copies import mark_dropped
from memorybus_console.operations.copies.freshness import (
    describe_shared_state,
    find_free_name,
    owner_of,
)
from memorybus_console.operations.copies.generations import plan_up_to, plan_without_end
from memorybus_console.operations.known_providers import check_provider
from memorybus_console.operations.moments import numbers_upto
from memorybus_console.operations.rebuild.comparison import MAX_NAMED, ComparisonResult, summarize
from memorybus_console.operations.rebuild.pause import LanePause, count_parked
from memorybus_console.operations.rebuild.rebuild import Rebuilder
from memorybus_console.operations.stores import Stores

PAGE = 500
"""How many events are asked for at once."""


class CannotVerify(MemoryBusError):
    """No copy can be compared with the live state, which cannot be asked for events either."""


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a verification.

    Attributes:
        provider: the provider whose live state is verified.
        until: the moment up to which the compared history goes; "" for now.
        sample: the most events to ask for, spread over the history; 0 for all of them.
        by: who asks for it.
    """

    provider: str
    until: str = ""
    sample: int = 0
    by: str = ""


class VerifyResult(msgspec.Struct, frozen=True):
    """The result of a verification.

    Attributes:
        provider: the provider whose live state was verified.
        live: its live instance.
        how: ``digest``: compared with a copy that was filled from the history; ``events``: asked
            for events by their ids.
        ok: whether nothing differs or is missing.
        compared: the comparison of the digests; None for ``events``.
        asked: how many events were asked for.
        missing: how many of them are lost: not in the state, not parked, not discarded by an
            operator.
        named: the first of the lost events.
        parked: how many events are parked; for ``events``, how many of those asked for.
        discarded: how many of those asked for were discarded for this instance by an operator.
    """

    provider: str
    live: str
    how: str
    ok: bool
    compared: ComparisonResult | None = None
    asked: int = 0
    missing: int = 0
    named: tuple[str, ...] = ()
    parked: int = 0
    discarded: int = 0


def verify_provider(work: Rebuilder, wanted: VerifyRequest, clock: Clock = SYSTEM) -> VerifyResult:
    """Compare the live state with the history.

    Raises:
        CannotVerify: the provider offers no way to do so.
        LanesStalled: lanes do not reach the position they should.
        ConfigError: the provider or the moment is unknown.
        InspectionFailed, LogError, ArchiveError: something cannot be read.
    """
    provider = wanted.provider
    check_provider(work.stores, provider)
    live = live_name(provider, work.stores.instances.live())
    why = f"{provider} gives no digest"
    if work.inspector.digest(provider, live).given:
        copy = _build_copy(work.stores, wanted, live, clock)
        why = _reason_against_copy(work.stores, copy)
        if not why:
            return _verify_by_digest(work, wanted, live, copy)
    if work.inspector.check_known(provider, live, ()).given:
        return _verify_by_events(work, wanted, live)
    raise CannotVerify(
        f"{why}; and it cannot be asked for events by their ids: what it holds cannot be compared "
        f"with the history; memorybus diff shows what two generations or copies recall"
    )


# -- by digest ------------------------------------------------------------------------------------


def _reason_against_copy(stores: Stores, copy: Instance) -> str:
    """Return why no copy may be filled: it would write into an existing state; "" if it may."""
    what = describe_instance(stores.settings, copy.provider, copy.name, copy.options)
    owner = owner_of(what, copy, stores.instances.read_view(), stores.settings.provider)
    return describe_shared_state(copy, owner) if owner else ""


def _verify_by_digest(
    work: Rebuilder, wanted: VerifyRequest, live: str, copy: Instance
) -> VerifyResult:
    """Fill a copy, compare it with the live state, and drop it."""
    provider, stores = wanted.provider, work.stores
    for name in _abandoned_copies(stores, provider):
        mark_dropped(stores, name)
    pause = work.pause(provider, copy.name, wanted.by)
    if not wanted.until:
        pause.check_complete(live)
    try:
        work.add_copy(copy)
        if wanted.until:
            found = _compare_with_moment(work, pause, live, copy)
        else:
            found = _compare_with_now(work, pause, live, copy)
    finally:
        pause.end(live)
        mark_dropped(stores, copy.name)
        pause.end(copy.name)
    aside = count_parked(stores.lanes.states(live))
    return VerifyResult(provider, live, "digest", found.same, found, parked=aside)


def _compare_with_moment(
    work: Rebuilder, pause: LanePause, live: str, copy: Instance
) -> ComparisonResult:
    """Compare with the state of a moment, at which the copy's plan ends."""
    ends = copy.plan.ends(work.stores.settings.partitions)
    pause.wait_for_none(
        lambda: count_behind(pause.numbers(copy.name), ends),
        f"{copy.name} is not filled; does a worker serve {copy.provider}?",
    )
    return work.comparison(copy.provider, live, copy.name).compare_now()


def _compare_with_now(
    work: Rebuilder, pause: LanePause, live: str, copy: Instance
) -> ComparisonResult:
    """Compare with the present state; the live lanes pause only if a key differs while they run."""
    work.fill(pause, copy.name, copy.provider)
    one = work.comparison(copy.provider, live, copy.name)
    keys, left = work.compare_while_running(one, pause)
    if left:
        pause.meet(copy.name, live, copy.provider)
        left = one.compare_again(left)
    return summarize(keys, left)


def _abandoned_copies(stores: Stores, provider: str) -> list[str]:
    """Return the copies that killed verifications left behind."""
    copies = stores.instances.all().values()
    return [one.name for one in copies if (one.provider, one.purpose) == (provider, "verify")]


def _build_copy(stores: Stores, wanted: VerifyRequest, live: str, clock: Clock) -> Instance:
    """Return the record of a copy with the live instance's plan and options."""
    view = stores.instances.read_view()
    known = view.all.get(live, Instance(name=live, provider=wanted.provider))
    plan = plan_without_end(known.plan)
    if wanted.until:
        plan = plan_up_to(
            plan, numbers_upto(stores.history, wanted.until), stores.settings.partitions
        )
    return Instance(
        name=find_free_name(stores, wanted.provider, view, "verify"),
        provider=wanted.provider,
        options=known.options,
        plan=plan,
        purpose="verify",
        made_at=clock.now_ms(),
        made_by=wanted.by,
    )


# -- event by event -------------------------------------------------------------------------------


def _verify_by_events(work: Rebuilder, wanted: VerifyRequest, live: str) -> VerifyResult:
    provider, stores = wanted.provider, work.stores
    lanes = stores.lanes.states(live)
    plan = stores.instances.all().get(live, Instance(name=live, provider=provider)).plan
    upto = {p: lane.n for p, lane in enumerate(lanes)}
    if wanted.until:
        then = numbers_upto(stores.history, wanted.until)
        upto = {p: min(n, then.get(p, 0)) for p, n in upto.items()}
    stride = max(1, sum(upto.values()) // wanted.sample) if wanted.sample else 1
    # Read after the lanes: an event that they have passed is applied, or parked by now.
    parked_ids = _parked_ids(stores, live)
    there, waiting, missing = 0, 0, list[str]()
    events = _select_events(stores, plan, upto, stride)
    while page := list(islice(events, PAGE)):
        while page:
            found = work.inspector.check_known(provider, live, page)
            there += found.there
            waiting += sum(one in parked_ids for one in found.missing)
            missing += (one for one in found.missing if one not in parked_ids)
            page = page[len(page) - found.unasked :]
    discarded = _discarded_ids(stores, live) if missing else set()
    lost = [one for one in missing if one not in discarded]
    return VerifyResult(
        provider,
        live,
        how="events",
        ok=not lost,
        asked=there + waiting + len(missing),
        missing=len(lost),
        named=tuple(lost[:MAX_NAMED]),
        parked=waiting,
        discarded=len(missing) - len(lost),
    )


def _parked_ids(stores: Stores, live: str) -> set[str]:
    """Return the ids of the events that an instance has parked."""
    letters = DeadLetters(stores.settings)
    try:
        return {dead.stored.letter.event_id for dead in letters.letters([live])}
    finally:
        letters.close()


def _discarded_ids(stores: Stores, live: str) -> set[str]:
    """Return the ids of the events that operators discarded for an instance."""
    decided = stores.history.scan(Query(types=(DeadLetterResolved.__name__,)))
    events = (one.envelope.event for one in decided)
    return {
        one.event_id
        for one in events
        if isinstance(one, DeadLetterResolved) and (one.provider, one.action) == (live, "discard")
    }


def _select_events(
    stores: Stores, plan: Plan, upto: dict[int, int], stride: int
) -> Iterator[SentEvent]:
    spans = {p: (NumberRange(1, n),) for p, n in upto.items()}
    number = 0
    for event in stores.history.scan(plan.query, plan=Plan(spans=spans)):
        where = event.position
        if isinstance(event.envelope.event, Omitted) or not plan.takes(where.partition, where.n):
            continue
        number += 1
        if number % stride == 0:
            yield _event_to_ask(event)


def _event_to_ask(event: LoggedEvent) -> SentEvent:
    one, where = event.envelope, event.position
    kind = type(one.event).__name__
    return SentEvent(
        one.id, kind, where.partition, where.entry, where.n, one.at, one.scope, one.session
    )
