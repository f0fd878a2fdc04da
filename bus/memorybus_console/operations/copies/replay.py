"""``memorybus replay``: plans which part of the history a copy gets, makes it, and fills it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.path_names import check_name
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, LogUnavailable, MemoryBusError
from memorybus.history.history import History
from memorybus.ids import new_mark
from memorybus.processes import signals
from memorybus.processes.child import start_child
from memorybus.processes.commands import copy_command, describe_instance
from memorybus.processes.keeper import keeping
from memorybus.processes.reports import InstanceDescription
from memorybus.query.query import EVERYTHING, Query
from memorybus.query.ranges import NumberRange, Plan
from memorybus.registry.homes import Home, find_local_home, is_same_home, local_home
from memorybus.registry.instances import CopyRequest, Instance, lasting_pause, normalise_options
from memorybus.registry.reclaim import reclaim_lanes
from memorybus.registry.roster import worker_id
from memorybus.text.display import format_duration

from memorybus_console.operations.copies.generations import (
    describe_leftovers,
    describe_remedy,
    describe_shared_state,
    owner_of,
)
from memorybus_console.operations.moments import (
    moment_of,
    moment_text,
    numbers_before,
    numbers_upto,
)
from memorybus_console.operations.stores import Stores, check_provider
from memorybus_console.result import Remark, Result

Describe = Callable[[Settings, str, str, Mapping[str, Any]], InstanceDescription]

_RECORD_SECONDS = 0.5
"""Seconds within which a command that has made a copy's lanes also writes the copy's record."""


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """Which copy a replay fills, and with which part of the history.

    Attributes:
        since: the first moment (see `memorybus_console.operations.moments`); "" for the beginning.
        rate: events a second at most, from now on; 0.0 for no limit, None for the rate with which
            the copy was begun.
    """

    provider: str  # the instance of the settings whose kind and options the copy has
    into: str
    query: Query = EVERYTHING  # selects the events; its lineages need not be resolved
    since: str = ""
    until: str = ""  # the last moment; "" for now
    rate: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False  # whether the target may already hold something
    reason: str = ""  # why the copy is made


class ReplayPlan(Result, frozen=True):
    """A replay that could begin now.

    Attributes:
        known: whether the record exists already, so that the command continues this replay.
        delivery: its delivery class (G4).
        placement: "local" or "shared".
        home: where a local copy's state will lie.
        here: whether a worker on this host can fill it.
        total: positions of the history in its plan, including those that it leaves out.
    """

    instance: Instance
    known: bool
    kind: str
    delivery: str
    placement: str
    home: Home | None
    here: bool
    total: int

    def facts(self) -> dict[str, str]:
        instance, home = self.instance, self.home
        rate = instance.plan.rate
        facts = {
            "copy": f"{instance.name} of {instance.provider} ({self.kind}, {self.delivery})",
            "begins": "continues where it stopped" if self.known else "from an empty state",
            "home": "shared" if home is None else f"{home.path} on {home.host}",
        }
        asked = instance.asked
        moments = {"from": asked.since, "until": asked.until} if asked else {}
        facts |= {name: moment_text(moment) for name, moment in moments.items() if moment}
        if rate:
            facts["rate"] = f"{rate:g} events a second at most"
        return facts | {"takes": f"{self.total} places of the history"}

    def is_plan(self) -> bool:
        return True

    def describe_unserved(self) -> str:
        """Return why nobody would fill the copy, and what to do."""
        home = self.home
        where = f"{home.path} on {home.host}" if home else "another host"
        return (
            f"the state of {self.instance.provider} lies in {where}, and no live worker serves it: "
            f"run this command there, or start a worker there; the copy {self.instance.name!r} "
            f"waits for it"
        )


class CopyFilled(Result, frozen=True, kw_only=True):
    """A replay that is done: the copy has everything.

    Attributes:
        done: how many places of the history it has passed.
        home: the directory of its state here; None for a shared state.
    """

    finished: bool = True
    provider: str
    into: str
    done: int
    parked: int
    home: str | None

    def headline(self) -> str:
        return f"{self.into} has passed {self.done} places of the history"

    def notes(self) -> Iterator[Remark]:
        if self.parked:
            again = f"memorybus dlq ls --provider {self.into}"
            yield Remark(f"{self.parked} events are parked: {again}", "yellow")


def plan_replay(
    stores: Stores,
    request: ReplayRequest,
    clock: Clock = SYSTEM,
    describe: Describe = describe_instance,
    *,
    by: str = "",
) -> ReplayPlan:
    """Return what a replay would do; change nothing.

    Raises:
        ConfigError: the provider or a moment is unknown, or the target is live or not empty.
        MissingProvider: the copy cannot be made here.
    """
    check_provider(stores, request.provider)
    what = describe(stores.settings, request.provider, request.into, request.options)
    _check_target(stores, request)
    known, instance = _find_or_build_record(stores, request, what, clock, by)
    home = _home_of(stores, request.provider) if what.placement == "local" else None
    ends = instance.plan.ends(stores.settings.partitions)
    return ReplayPlan(
        instance=instance,
        known=known,
        kind=what.kind,
        delivery=what.delivery,
        placement=what.placement,
        home=home,
        here=home is None or is_same_home(home, find_local_home(stores.settings)) or not home.place,
        total=sum(ends.values()),
    )


def _find_or_build_record(
    stores: Stores, request: ReplayRequest, what: InstanceDescription, clock: Clock, by: str
) -> tuple[bool, Instance]:
    """Return whether the copy exists already, and its record as it is or would be."""
    instance = stores.instances.get(request.into)
    asked = _build_instance(stores, request, clock, by)
    if instance is None and not request.force:
        instance = _find_concurrent_copy(stores, asked, what, clock)
    if instance is None:
        return False, asked
    return True, _check_resumable(instance, asked, request)


def _check_target(stores: Stores, request: ReplayRequest) -> None:
    into = check_name(request.into)
    registered = stores.roster.providers()
    if into in stores.settings.providers or into == request.provider or into in registered:
        raise ConfigError(
            f"{into!r} is a live provider; replay goes into a fresh instance: choose a new name"
        )


def _find_concurrent_copy(
    stores: Stores, copy: Instance, what: InstanceDescription, clock: Clock
) -> Instance | None:
    """Return the record of a copy that another command is making right now, or None.

    That command makes the copy's lanes first and its record a moment later.
    """
    try:
        _check_empty(stores, copy, what)
    except ConfigError:
        clock.sleep(_RECORD_SECONDS)
        instance = stores.instances.get(copy.name)
        if instance is None:
            raise
        return instance
    return None


def _check_empty(stores: Stores, copy: Instance, what: InstanceDescription) -> None:
    owner = owner_of(what, copy, stores.instances.read_view(), stores.settings.provider)
    if owner:
        raise ConfigError(
            f"{describe_shared_state(copy, owner)}; {describe_remedy(what, copy.name)}; if its "
            f"options give it one already, add --force"
        )
    leftovers = describe_leftovers(stores, copy.name)
    if leftovers:
        raise ConfigError(
            f"{copy.name!r} is not empty: {leftovers}; choose a new name, or continue with what is "
            f"there with --force"
        )


def _home_of(stores: Stores, provider: str) -> Home:
    """Return where the state of a local provider and its copies lies; this host if it has none."""
    return stores.homes.all().get(provider) or find_local_home(stores.settings)


def _build_instance(stores: Stores, request: ReplayRequest, clock: Clock, by: str) -> Instance:
    options = normalise_options(request.options)
    return Instance(
        name=request.into,
        provider=request.provider,
        options=options,
        plan=Plan(
            query=stores.history.resolve(request.query),
            spans=spans_between(stores.settings, stores.history, request.since, request.until),
            rate=request.rate or 0.0,
        ),
        made_at=clock.now_ms(),
        made_by=by,
        reason=request.reason,
        asked=CopyRequest(
            query=request.query,
            since=_recorded_moment(request.since),
            until=_recorded_moment(request.until),
            options=options,
        ),
    )


def _recorded_moment(moment: str) -> str:
    return str(moment_of(moment)) if moment else ""


def spans_between(
    settings: Settings, history: History, since: str, until: str
) -> dict[int, tuple[NumberRange, ...]]:
    """Return the numbers of every partition between two moments; "" stands for either end.

    Raises:
        ConfigError: a moment cannot be read, or names an event that does not exist.
    """
    heads = {head.partition: head.n for head in history.log.heads()}
    first = numbers_before(history, since) if since else {}
    last = numbers_upto(history, until) if until else heads
    return {
        p: (NumberRange(first.get(p, 0) + 1, min(last.get(p, 0), heads.get(p, 0))),)
        for p in range(settings.partitions)
    }


def _check_resumable(instance: Instance, asked: Instance, request: ReplayRequest) -> Instance:
    """Return the existing record, with the requested rate, if it is of the same replay."""
    advice = f"choose another name, or drop it: memorybus replay --cancel {instance.name} --yes"
    if instance.purpose != "replay":
        raise ConfigError(f"{instance.name!r} is a copy that a {instance.purpose} made; {advice}")
    if instance.dropped:
        raise ConfigError(
            f"{instance.name!r} is being removed; wait for it, or choose another name"
        )
    if instance.asked is None or (instance.provider, instance.asked) != (
        asked.provider,
        asked.asked,
    ):
        raise ConfigError(f"{instance.name!r} is a copy with another plan; {advice}")
    return instance if request.rate is None else _with_rate(instance, request.rate)


def _with_rate(instance: Instance, rate: float) -> Instance:
    plan = msgspec.structs.replace(instance.plan, rate=rate)
    return msgspec.structs.replace(instance, plan=plan)


def begin_replay(stores: Stores, plan: ReplayPlan, request: ReplayRequest) -> ReplayPlan:
    """Record the copy, or its new rate; from now on every worker of its provider fills it.

    Returns:
        The plan; if the same command made the copy meanwhile elsewhere, the plan of that copy.

    Raises:
        ConfigError: a copy of that name with another plan was made meanwhile.
    """
    if plan.known:
        _write_rate(stores, plan.instance)
        return plan
    if plan.home is not None:
        home = plan.home if plan.home.place else local_home(stores.settings)
        stores.homes.move(plan.instance.name, home)  # before any worker serves it
    try:
        stores.add_instance(plan.instance)
    except ConfigError:
        made = stores.instances.get(plan.instance.name)
        if made is None:
            raise
        there = _check_resumable(made, plan.instance, request)
        _write_rate(stores, there)
        return msgspec.structs.replace(plan, instance=there, known=True)
    return plan


def _write_rate(stores: Stores, copy: Instance) -> None:
    """Write a copy's rate, which the workers that fill it obey from then on."""
    while (instance := stores.instances.get(copy.name)) is not None:
        now = _with_rate(instance, copy.plan.rate)
        if now == instance or stores.instances.change(instance, now):
            return


LOOK_EVERY = 0.2  # seconds between two reads of a copy's progress

_REDIS_WAIT_SECONDS = 30.0  # seconds that a command waits while Redis is away


class CopyGone(MemoryBusError):
    """A copy was dropped while it was filled."""


class CopyPaused(MemoryBusError):
    """Somebody paused a copy while it was filled."""


class NobodyServes(MemoryBusError):
    """A copy's state lies on another host, and no worker is alive there."""


def time_text(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.1f} seconds" if seconds < 10 else format_duration(seconds)


class CopyProgress(msgspec.Struct, frozen=True):
    """How far a copy is filled.

    Attributes:
        done: positions of the history that it has passed, including those it leaves out.
        rate: positions a second, since the command began to watch.
        eta: seconds that remain at this rate; None if nothing moves.
    """

    done: int
    total: int
    parked: int
    rate: float
    eta: float | None

    @property
    def finished(self) -> bool:
        """Whether the copy has passed its whole plan."""
        return self.done >= self.total

    def pace(self) -> str:
        """Return how fast it is filled, and how long that takes, in words."""
        return f"{self.rate:,.0f}/s" + ("" if self.eta is None else f", {time_text(self.eta)} left")


class LocalWorker:
    """A child process that serves one copy; if it dies, another one takes its place."""

    def __init__(self, settings: Settings, name: str, clock: Clock = SYSTEM) -> None:
        self._settings = settings
        self._mark = new_mark()
        command = copy_command(name, self._mark)
        self._keeping = keeping(lambda: start_child(command, settings), clock)

    def __enter__(self) -> Self:
        self._keeper = self._keeping.__enter__()
        self.watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the child, which first releases its lanes."""
        self._keeping.__exit__(kind, error, trace)

    def watch(self) -> None:
        """Start another child if the last one has died, after freeing the dead one's lanes.

        Raises:
            MemoryBusError: the reason that the child reported; another child would end in the same
                way.
            OSError: no child can be started.
        """
        with signals.deferred():
            death = self._keeper.poll()
        if death is None:
            return
        if death.why is not None:
            raise death.why
        if death.child is not None:
            reclaim_lanes(self._settings, worker_id(death.child.pid, self._mark))


def follow_progress(
    stores: Stores,
    instance: Instance,
    worker: LocalWorker | None,
    clock: Clock = SYSTEM,
) -> Iterator[CopyProgress]:
    """Yield a copy's progress until it has passed its whole plan.

    Args:
        worker: the command's own worker, which is started again if it dies; None for none.

    Raises:
        CopyGone: somebody dropped it.
        CopyPaused: somebody paused it.
        LogUnavailable: Redis is away for longer than the command waits.
        MemoryBusError: the command's worker cannot serve the copy.
    """
    begun, first = clock.monotonic(), None
    seen_at = begun
    while True:
        if worker is not None:
            worker.watch()
        try:
            done, total, parked = _read_progress(stores, instance.name)
        except LogUnavailable:
            if clock.monotonic() - seen_at >= _REDIS_WAIT_SECONDS:
                raise
            clock.sleep(1.0)
            continue
        seen_at = clock.monotonic()
        first = done if first is None else first
        progress = _build_progress(done, total, parked, done - first, seen_at - begun)
        yield progress
        if progress.finished:
            return
        clock.sleep(LOOK_EVERY)


def _read_progress(stores: Stores, name: str) -> tuple[int, int, int]:
    now = stores.instances.get(name)
    if now is None or now.dropped:
        raise CopyGone(f"{name!r} was dropped while it was filled")
    done, total, parked = measure_progress(stores, now)
    pause = lasting_pause(stores.instances.pauses().get(name))
    if pause is not None and done < total:
        raise CopyPaused(
            f"{name} is paused ({pause.reason}), and has {done} of {total}; first: memorybus "
            f"provider resume {name}; then the same command continues"
        )
    return done, total, parked


def measure_progress(stores: Stores, instance: Instance) -> tuple[int, int, int]:
    """Return how many positions of its plan a copy has passed, of how many, and what it parked."""
    lanes = stores.lanes.states(instance.name)
    ends = instance.plan.ends(stores.settings.partitions).values()
    done = sum(min(lane.n, end) for lane, end in zip(lanes, ends, strict=True))
    return done, sum(ends), sum(lane.parked for lane in lanes)


def _build_progress(done: int, total: int, parked: int, moved: int, seconds: float) -> CopyProgress:
    rate = moved / seconds if seconds > 0 else 0.0
    eta = (total - done) / rate if rate > 0 else None
    return CopyProgress(done, total, parked, round(rate, 1), None if eta is None else round(eta, 1))
