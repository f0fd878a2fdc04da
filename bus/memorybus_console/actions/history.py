"""Acts on a provider's generations: rebuild, roll back, drop."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
from memorybus.config.path_names import check_name
from memorybus.query.query import EVERYTHING, Query

from memorybus_console.actions.action import Action, Ground, P_co, R_co
from memorybus_console.actions.providers import checked_stores
from memorybus_console.operations.copies import copies, replay
from memorybus_console.operations.copies.copies import CopyDropped
from memorybus_console.operations.copies.replay import (
    CopyFilled,
    CopyProgress,
    LocalWorker,
    ReplayPlan,
    ReplayRequest,
)
from memorybus_console.operations.rebuild import plan, rebuild
from memorybus_console.operations.rebuild.plan import RebuildPlan, RebuildRequest
from memorybus_console.operations.rebuild.rebuild import (
    Drop,
    Rebuilder,
    RebuildResult,
    open_rebuilder,
)
from memorybus_console.operations.stores import Stores
from memorybus_console.result import Result


class PlannedRollback(Result, frozen=True):
    """What a rollback would do.

    Attributes:
        to: the generation that would serve again.
    """

    provider: str
    to: str
    executed: bool = False

    def headline(self) -> str:
        return f"would bring {self.to} up to date and let it serve {self.provider} again"

    def is_plan(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class GenerationsAction(Action[P_co, R_co]):
    """An act on a provider's generations, which holds the provider's lock."""

    recorded = ("provider",)
    verb: ClassVar[str]
    """What holds the lock, as other commands name it."""

    provider: str

    def carry_out(self, ground: Ground) -> R_co:
        with open_rebuilder(
            ground.settings, self.provider, self.verb, ground.operator, ground.progress
        ) as work:
            return self._work(work, self._request(ground))

    def _request(self, ground: Ground) -> RebuildRequest:
        return RebuildRequest(provider=self.provider, reason=self.reason, by=ground.operator)

    @abstractmethod
    def _work(self, work: Rebuilder, request: RebuildRequest) -> R_co: ...


@dataclass(frozen=True, kw_only=True)
class Rebuild(GenerationsAction[RebuildPlan, RebuildResult]):
    """Build a provider's state again from history, beside the live one; then swap.

    Attributes:
        whole: whether to take the whole history, including what the live instance leaves out.
        verify: whether the new state must equal the live one, where the two can be compared.
    """

    title = "rebuild"
    verb = "rebuild"

    query: Query = EVERYTHING  # selects the events that are left out
    until: str = ""  # the last moment of the past that is taken; "" for all of it
    whole: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    verify: bool = True

    def plan(self, ground: Ground) -> RebuildPlan:
        with checked_stores(ground) as stores:
            return plan.plan_rebuild(stores, self._request(ground), ground.clock)

    def _request(self, ground: Ground) -> RebuildRequest:
        return RebuildRequest(
            provider=self.provider,
            query=self.query,
            until=self.until,
            whole=self.whole,
            options=dict(self.options),
            verify=self.verify,
            reason=self.reason,
            by=ground.operator,
        )

    def _work(self, work: Rebuilder, request: RebuildRequest) -> RebuildResult:
        return rebuild.rebuild(work, request)


class RollBack(GenerationsAction[PlannedRollback, RebuildResult]):
    """Let the previous generation serve again, once it is up to date."""

    title = "roll back"
    verb = "rollback"

    def plan(self, ground: Ground) -> PlannedRollback:
        with checked_stores(ground) as stores:
            return PlannedRollback(self.provider, plan.rollback_target(stores, self.provider))

    def _work(self, work: Rebuilder, request: RebuildRequest) -> RebuildResult:
        return rebuild.roll_back(work, request)


class DropGenerations(GenerationsAction[Drop, Drop]):
    """Drop an unfinished rebuild, or else the generations that do not serve."""

    title = "drop generations"
    verb = "drop"

    def plan(self, ground: Ground) -> Drop:
        with checked_stores(ground) as stores:
            return rebuild.plan_drop(stores, self.provider)

    def _work(self, work: Rebuilder, request: RebuildRequest) -> Drop:
        return rebuild.drop(work, request)


@dataclass(frozen=True, kw_only=True)
class Replay(Action[ReplayPlan, CopyFilled]):
    """Apply the history again, into a copy of a provider instance.

    Attributes:
        rate: events a second at most; None for the rate with which the copy was begun.
    """

    title = "replay"
    recorded = ("provider", "into")

    provider: str  # the instance whose kind and options the copy has
    into: str
    query: Query = EVERYTHING
    since: str = ""  # the first moment; "" for the beginning
    until: str = ""  # the last moment; "" for now
    rate: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False  # whether the target may already hold something
    watch: Callable[[CopyProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        check_name(self.into)

    def plan(self, ground: Ground) -> ReplayPlan:
        with checked_stores(ground) as stores:
            return self._plan(stores, ground)

    def carry_out(self, ground: Ground) -> CopyFilled:
        with checked_stores(ground) as stores:
            plan = self._plan(stores, ground)
            plan = replay.begin_replay(stores, plan, self._request(ground))
            return self._fill(stores, plan, ground)

    def _plan(self, stores: Stores, ground: Ground) -> ReplayPlan:
        return replay.plan_replay(stores, self._request(ground))

    def _request(self, ground: Ground) -> ReplayRequest:
        return ReplayRequest(
            provider=self.provider,
            into=self.into,
            query=self.query,
            since=self.since,
            until=self.until,
            rate=self.rate,
            options=self.options,
            force=self.force,
            reason=self.reason,
            by=ground.operator,
        )

    def _fill(self, stores: Stores, plan: ReplayPlan, ground: Ground) -> CopyFilled:
        name = plan.instance.name
        worker = LocalWorker(stores.settings, name) if plan.here else None
        if worker is None and plan.instance.provider not in stores.roster.served_providers():
            raise replay.NobodyServes(plan.describe_unserved())
        parked = 0
        with worker or nullcontext():
            for progress in replay.follow_progress(stores, plan.instance, worker):
                self.watch(progress)
                ground.progress(progress.pace(), progress.done, progress.total or 0)
                parked = progress.parked
        return CopyFilled(
            provider=plan.instance.provider,
            into=name,
            done=plan.total,
            parked=parked,
            home=str(stores.settings.provider_home(name)) if plan.home else None,
        )


@dataclass(frozen=True, kw_only=True)
class DropCopy(Action[CopyDropped, CopyDropped]):
    """Drop a copy, with its lanes and its state."""

    title = "drop copy"
    recorded = ("name",)

    name: str

    def plan(self, ground: Ground) -> CopyDropped:
        with checked_stores(ground) as stores:
            copy = copies.copy_to_drop(stores, self.name)
        return CopyDropped(**msgspec.structs.asdict(copy))

    def carry_out(self, ground: Ground) -> CopyDropped:
        with checked_stores(ground) as stores:
            copy = copies.copy_to_drop(stores, self.name)
            waits = copies.drop_copy(stores, copy)
        return CopyDropped(
            **msgspec.structs.asdict(copy), executed=True, gone=not waits, waits=waits
        )
