"""``memorybus verify``: compares the live state, by digest, with a copy made from the history."""

from collections.abc import Iterator
from typing import Final

from memorybus.clock import SYSTEM, Clock
from memorybus.errors import MemoryBusError
from memorybus.jobs.inspect import ReadDigest
from memorybus.processes.commands import describe_instance
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.instances import Instance, live_name

from memorybus_console.operations.copies.copies import mark_dropped
from memorybus_console.operations.copies.generations import (
    describe_shared_state,
    find_free_name,
    owner_of,
    plan_up_to,
    plan_without_end,
)
from memorybus_console.operations.moments import count_behind, numbers_upto
from memorybus_console.operations.rebuild.comparison import ComparisonResult, summarize
from memorybus_console.operations.rebuild.pause import LanePause, count_parked
from memorybus_console.operations.rebuild.rebuild import Rebuilder
from memorybus_console.operations.stores import Stores, check_provider
from memorybus_console.result import Remark, Result


class CannotVerify(MemoryBusError):
    """No copy can be compared with the live state."""


_DIFFERENCES: Final = {
    "differs": "differs",
    "missing": "in the live one only",
    "strange": "in the copy only",
}


class VerifyResult(Result, frozen=True):
    """The result of a verification.

    Attributes:
        compared: the comparison of the digests.
    """

    provider: str
    live: str
    ok: bool
    compared: ComparisonResult
    parked: int = 0

    def headline(self) -> str:
        keys, named = self.compared.keys, self.compared.named
        equal = f"{self.live}: {keys - self.compared.differing} of {keys} keys equal the history's"
        return "\n".join(
            [
                equal,
                *(f"  {difference.key}: {_DIFFERENCES[difference.how]}" for difference in named),
            ]
        )

    def notes(self) -> Iterator[Remark]:
        if unnamed := self.compared.differing - len(self.compared.named):
            yield Remark(f"{unnamed} more")
        if self.parked:
            yield Remark(f"{self.parked} events are parked: memorybus dlq ls", "yellow")

    def failed(self) -> bool:
        return not self.ok


def verify_provider(
    work: Rebuilder, provider: str, until: str, by: str, clock: Clock = SYSTEM
) -> VerifyResult:
    """Compare the live state with the history up to a moment; "" for now.

    Raises:
        CannotVerify: the provider offers no way to do so.
        LanesStalled: lanes do not reach the position they should.
        ConfigError: the provider or the moment is unknown.
        InspectionFailed, LogError, ArchiveError: something cannot be read.
    """
    check_provider(work.stores, provider)
    live = live_name(provider, work.stores.instances.live())
    if not work.inspector.ask(provider, live, ReadDigest()).given:
        raise _cannot_error(f"{provider} gives no digest")
    view = work.stores.instances.read_view()
    copy = Instance(
        name=find_free_name(work.stores, provider, view, "verify"),
        provider=provider,
        options=view.all.get(live, Instance(name=live, provider=provider)).options,
        plan=_plan_of_copy(work.stores, view.all.get(live), until),
        purpose="verify",
        made_at=clock.now_ms(),
        made_by=by,
    )
    why = _reason_against_copy(work.stores, copy)
    if why:
        raise _cannot_error(why)
    return _compare_with_copy(work, live, copy, until=bool(until))


def _cannot_error(why: str) -> CannotVerify:
    return CannotVerify(
        f"{why}: what it holds cannot be compared with the history; memorybus diff shows what two "
        f"generations or copies recall"
    )


def _reason_against_copy(stores: Stores, copy: Instance) -> str:
    """Return why no copy may be filled: it would write into an existing state; "" if it may."""
    what = describe_instance(stores.settings, copy.provider, copy.name, copy.options)
    owner = owner_of(what, copy, stores.instances.read_view(), stores.settings.provider)
    return describe_shared_state(copy, owner) if owner else ""


def _compare_with_copy(work: Rebuilder, live: str, copy: Instance, *, until: bool) -> VerifyResult:
    """Fill a copy, compare it with the live state, and drop it."""
    provider, stores = copy.provider, work.stores
    for name in _abandoned_copies(stores, provider):
        mark_dropped(stores, name)
    pause = work.pause(provider, copy.name, copy.made_by)
    if not until:
        pause.check_complete(live)
    try:
        work.add_copy(copy)
        if until:
            result = _compare_with_moment(work, pause, live, copy)
        else:
            result = _compare_with_now(work, pause, live, copy)
    finally:
        pause.end(live)
        mark_dropped(stores, copy.name)
        pause.end(copy.name)
    aside = count_parked(stores.lanes.states(live))
    return VerifyResult(provider, live, result.same, result, aside)


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
    comparison = work.comparison(copy.provider, live, copy.name)
    keys, left = work.compare_while_running(comparison, pause)
    if left:
        pause.meet(copy.name, live, copy.provider)
        left = comparison.compare_again(left)
    return summarize(keys, left)


def _abandoned_copies(stores: Stores, provider: str) -> list[str]:
    """Return the copies that killed verifications left behind."""
    copies = stores.instances.all().values()
    return [copy.name for copy in copies if (copy.provider, copy.purpose) == (provider, "verify")]


def _plan_of_copy(stores: Stores, live: Instance | None, until: str) -> Plan:
    plan = plan_without_end(live.plan if live else WHOLE)
    if not until:
        return plan
    return plan_up_to(plan, numbers_upto(stores.history, until), stores.settings.partitions)
