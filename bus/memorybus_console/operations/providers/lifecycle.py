"""Records where a new instance begins; pauses and resumes instances, and lets them retry."""

import contextlib
from collections.abc import Iterator
from contextlib import closing

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import LetterRequest
from memorybus.errors import ConfigError, LogUnavailable
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus
from memorybus.ids import NewId, new_id
from memorybus.query.ranges import NumberRange, Plan
from memorybus.registry.instances import (
    Instance,
    InstancePause,
    InstancesView,
    RetryRequest,
    command_part,
    lasting_pause,
    live_name,
)

from memorybus_console.operations.copies.generations import generations
from memorybus_console.operations.copies.replay import spans_between
from memorybus_console.operations.dead_letters import send_requests
from memorybus_console.operations.stores import Stores, check_instance
from memorybus_console.result import Remark, Result

BEGINNING, NOW = "beginning", "now"


def check_beginning(settings: Settings, name: str, since: str) -> None:
    """Make sure that a new instance can begin there; change nothing.

    Args:
        since: ``beginning``, ``now``, or a moment of the history.

    Raises:
        ConfigError: `since` is no moment of the history, or lanes of that name begin elsewhere.
        LogUnavailable: Redis is away, and `since` is not the beginning.
    """
    if since == BEGINNING:
        return
    with Stores(settings) as stores:
        if used := _count_used_lanes(stores, name):
            raise ConfigError(
                f"{name} is known to the log: {used} of its lanes continue where they were, "
                f"in spite of --from {since}; remove these first: memorybus provider remove "
                f"{name}"
            )
        spans_between(settings, stores.history, "" if since == NOW else since, "")


def _count_used_lanes(stores: Stores, name: str) -> int:
    """Count the lanes of an instance that have an owner, or on which work was done."""
    lanes = stores.lanes.states(name)
    return sum(bool(lane.n or lane.parked or lane.discarded or lane.owned) for lane in lanes)


def register_instance(
    settings: Settings, name: str, since: str, by: str, clock: Clock = SYSTEM
) -> None:
    """Record where a new instance begins, before the settings name it.

    Raises:
        ConfigError: a copy has the name, or workers still serve a removed instance of that name.
        LogUnavailable: Redis is away, and the instance does not begin at the beginning.
    """
    with Stores(settings) as stores:
        if since != BEGINNING:
            _register_with_plan(stores, name, since, by, clock)
        else:
            _register_new(stores, name)


def _register_new(stores: Stores, name: str) -> None:
    """Record that the instance's lanes are new; do nothing without Redis.

    Without that record, a ``lookup`` provider is asked about every event of the past.
    """
    with contextlib.suppress(LogUnavailable):
        _check_free(stores, name)
        if not _count_used_lanes(stores, name):
            stores.instances.remove(name)  # removes the plan of an unfinished addition
        stores.lanes.note_new_lanes(name)
        _release_removed(stores, name)


def _check_free(stores: Stores, name: str) -> None:
    """Make sure that the new instance cannot be mistaken for another."""
    instance = stores.instances.get(name)
    if instance is not None and instance.is_copy:
        raise ConfigError(f"{name!r} is a copy of {instance.provider}; choose another name")
    serving = [worker.id for worker in stores.roster.alive() if name in worker.providers]
    if serving and _is_removed(stores, name):
        raise ConfigError(
            f"{name} was removed, and these workers still serve it as it was: "
            f"{', '.join(serving)}; restart them first"
        )


def _is_removed(stores: Stores, name: str) -> bool:
    pause = stores.instances.pauses().get(name)
    return pause is not None and pause.state == "removed"


def _release_removed(stores: Stores, name: str) -> None:
    """Let a removed instance begin as a new one: make it live, and end its pause."""
    _serve_itself(stores, name)
    if _is_removed(stores, name):
        stores.instances.resume(name)


def _serve_itself(stores: Stores, name: str) -> None:
    """Make a provider's own instance live if the generation that served it was removed."""
    if live_name(name, stores.instances.live()) != _resolve(stores, name):
        stores.instances.unserve(name)


def _register_with_plan(stores: Stores, name: str, since: str, by: str, clock: Clock) -> None:
    """Record a plan under the instance's name; its lanes pass earlier events without a call."""
    spans = spans_between(stores.settings, stores.history, "" if since == NOW else since, "")
    heads = {p: ranges[0].last or 0 for p, ranges in spans.items()}
    first = {p: heads[p] + 1 if since == NOW else spans[p][0].first for p in spans}
    _check_free(stores, name)
    stores.instances.remove(name)
    stores.add_instance(
        Instance(
            name=name,
            provider=name,
            plan=Plan(spans={p: (NumberRange(n),) for p, n in first.items()}),
            purpose="added",
            made_at=clock.now_ms(),
            made_by=by,
            reason=f"added from {since}",
        )
    )
    _release_removed(stores, name)


def resolve_instance(stores: Stores, name: str) -> str:
    """Return the instance that a known name stands for: a provider's live one, or itself.

    Raises:
        ConfigError: the name is unknown.
    """
    check_instance(stores, name)
    return _resolve(stores, name)


def _resolve(stores: Stores, name: str) -> str:
    """Return the live instance of a name, or the name itself if that instance is gone."""
    live = live_name(name, stores.instances.live())
    return name if stores.instances.get(live) is None else live


class PauseResult(Result, frozen=True):
    """The result of pausing or resuming an instance.

    Attributes:
        serves: the provider that was named, if the instance is a generation that serves it.
    """

    name: str
    paused: bool
    changed: bool
    reason: str
    backlog: int
    serves: str = ""
    executed: bool = True

    def headline(self) -> str:
        who = f"{self.name}, which serves {self.serves}" if self.serves else self.name
        verb = "is" if self.executed else "would be"
        waits = f"{self.backlog} events wait"
        if self.paused:
            already = "" if self.changed else " already"
            why = f": {self.reason}" if self.reason else ""
            return f"{who} {verb if self.changed else 'is'} paused{already}{why}; {waits}"
        if self.changed:
            return f"{who} {verb} resumed (paused: {self.reason}): {waits}"
        return f"{who} is not paused; {waits}"

    def notes(self) -> Iterator[Remark]:
        if self.paused and self.changed:
            yield Remark(
                "its lanes stop within a heartbeat; its memories are still recalled; nothing is "
                "lost: it catches up when it is resumed"
            )


def plan_pause(stores: Stores, name: str, reason: str) -> PauseResult:
    """Return what `pause_instance` would do; change nothing.

    Raises:
        ConfigError: the instance is unknown.
    """
    live = resolve_instance(stores, name)
    pause = lasting_pause(stores.instances.pauses().get(live))
    why = pause.reason if pause else reason
    what = _build_result(stores, name, live, paused=True, changed=pause is None, reason=why)
    return msgspec.structs.replace(what, executed=False)


def plan_resume(stores: Stores, name: str) -> PauseResult:
    """Return what `resume_instance` would do; change nothing.

    Raises:
        ConfigError: the instance is unknown, or must stay paused.
    """
    view, live = stores.instances.read_view(), _resolve(stores, name)
    if live not in view.pauses:
        check_instance(stores, name)
    _check_can_resume(live, view)
    pause = view.pauses.get(live)
    why = pause.reason if pause else ""
    what = _build_result(stores, name, live, paused=False, changed=pause is not None, reason=why)
    return msgspec.structs.replace(what, executed=False)


def pause_instance(
    stores: Stores, name: str, reason: str, by: str, clock: Clock = SYSTEM
) -> PauseResult:
    """Pause an instance's lanes; its recalls still work.

    A provider's name stands for its live generation, unless that was removed.

    Raises:
        ConfigError: the instance is unknown.
    """
    live = resolve_instance(stores, name)
    before = stores.instances.pause(live, InstancePause(reason, by, clock.now_ms()))
    why = before.reason if before else reason
    return _build_result(stores, name, live, paused=True, changed=before is None, reason=why)


def resume_instance(stores: Stores, name: str) -> PauseResult:
    """Resume an instance's lanes.

    A provider's name stands for its live generation; if that was removed, the provider's own
    instance becomes live. Lanes that a command paused resume when the command ends, or at once if
    it was killed.

    Raises:
        ConfigError: the instance is unknown, or must stay paused because it no longer serves.
    """
    _serve_itself(stores, name)
    view = stores.instances.read_view()
    live = live_name(name, view.live)
    if live not in view.pauses:
        check_instance(stores, name)
    _check_can_resume(live, view)
    provider = view.all[live].provider if live in view.all else live
    at_work = stores.working_commands([provider])
    was = stores.instances.change_pause(
        live, lambda before: command_part(before) if provider in at_work else None
    )
    pause = lasting_pause(was) if provider in at_work else was
    why = pause.reason if pause else ""
    return _build_result(stores, name, live, paused=False, changed=pause is not None, reason=why)


def _check_can_resume(name: str, view: InstancesView) -> None:
    instance = view.all.get(name, Instance(name=name, provider=name))
    states = {
        generation.name: generation.state for generation in generations(instance.provider, view)
    }
    state = "dropped" if instance.dropped else states.get(name, "")
    if state in ("kept", "unused", "dropped"):
        raise ConfigError(
            f"{name} cannot be resumed: it no longer serves {instance.provider} ({state}); see "
            f"memorybus rebuild ls. To serve from a kept one again: memorybus rebuild --rollback "
            f"{instance.provider} --yes"
        )


def _build_result(
    stores: Stores, name: str, live: str, *, paused: bool, changed: bool, reason: str
) -> PauseResult:
    serves = name if name != live else ""
    return PauseResult(live, paused, changed, reason, _count_backlog(stores, live), serves)


def _count_backlog(stores: Stores, name: str) -> int:
    heads = sum(head.n for head in stores.history.log.heads())
    return max(0, heads - sum(lane.n for lane in stores.lanes.states(name)))


class RetryNow(Result, frozen=True):
    """A retry of everything that waits for another try at an instance.

    Attributes:
        serves: the provider that was named, if the instance is a generation that serves it.
        failing: how its calls fail; "" if they do not.
        parked: how many dead letters are applied again, too; 0 if that was not asked for.
    """

    name: str
    serves: str
    failing: str
    backlog: int
    parked: int
    workers: int
    executed: bool = False

    def headline(self) -> str:
        who = f"{self.name}, which serves {self.serves}," if self.serves else self.name
        verb = "is retried now" if self.executed else "would be retried now"
        letters = f", with {self.parked} dead letters" if self.parked else ""
        return f"{who} {verb}{letters}: {self.backlog} events wait for it"

    def notes(self) -> Iterator[Remark]:
        if self.failing:
            yield Remark(f"its calls failed: {self.failing}")
        if not self.workers:
            yield Remark("no worker serves it; start one: memorybus up", "yellow")
        if self.executed:
            yield Remark("to watch its progress: memorybus status --watch")


def plan_retry(stores: Stores, name: str, *, parked: bool) -> RetryNow:
    """Return what `retry_now` would do; change nothing.

    Raises:
        ConfigError: the instance is unknown.
    """
    live = resolve_instance(stores, name)
    bus = read_status(stores.settings)
    status = next(
        provider for provider in (*bus.providers, *bus.copies) if _is_status_of(provider, live)
    )
    workers = [worker for worker in stores.roster.alive() if live in worker.providers]
    return RetryNow(
        name=live,
        serves=name if name != live else "",
        failing=status.failing,
        backlog=status.backlog,
        parked=_count_letters(stores, live) if parked else 0,
        workers=len(workers),
    )


def _is_status_of(status: ProviderStatus, instance: str) -> bool:
    return (status.live or status.name) == instance


def retry_now(
    stores: Stores, what: RetryNow, by: str, *, clock: Clock = SYSTEM, ids: NewId = new_id
) -> RetryNow:
    """Let workers try at once what waits for another try, and dead letters if that is planned.

    This may be repeated: it does not interrupt a try that is running.

    Raises:
        TooManyRequests: there are more dead letters than may be requested at once.
    """
    stores.retry_requests.send(what.name, RetryRequest(ids(), by, clock.now_ms()))
    if what.parked:
        decision = LetterRequest("", 0, "retry", operator=by, at=clock.now_ms())
        with closing(DeadLetters(stores.settings)) as desk:
            send_requests(desk, decision, desk.letters([what.name]), ids)
    return msgspec.structs.replace(what, executed=True)


def _count_letters(stores: Stores, instance: str) -> int:
    with closing(DeadLetters(stores.settings)) as desk:
        return len(desk.letters([instance]))
