"""Acts on a provider's generations and copies: rebuild, roll back, replay, drop."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

import msgspec
from memorybus.clock import SYSTEM
from memorybus.config.path_names import check_name

from memorybus_console.actions.action import Action, Ground, P_co, R_co
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
from memorybus_console.operations.stores import Stores, checked_stores
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
            return self._work(work, ground.operator)

    @abstractmethod
    def _work(self, work: Rebuilder, by: str) -> R_co: ...


@dataclass(frozen=True, kw_only=True)
class Rebuild(RebuildRequest, GenerationsAction[RebuildPlan, RebuildResult]):
    """Build a provider's state again from history, beside the live one; then swap."""

    title = "rebuild"
    verb = "rebuild"

    def plan(self, ground: Ground) -> RebuildPlan:
        with checked_stores(ground.settings) as stores:
            return plan.plan_rebuild(stores, self, ground.clock, ground.operator)

    def _work(self, work: Rebuilder, by: str) -> RebuildResult:
        return rebuild.rebuild(work, self, by)


class RollBack(GenerationsAction[PlannedRollback, RebuildResult]):
    """Let the previous generation serve again, once it is up to date."""

    title = "roll back"
    verb = "rollback"

    def plan(self, ground: Ground) -> PlannedRollback:
        with checked_stores(ground.settings) as stores:
            return PlannedRollback(self.provider, plan.rollback_target(stores, self.provider))

    def _work(self, work: Rebuilder, by: str) -> RebuildResult:
        return rebuild.roll_back(work, self.provider, by, self.reason)


class DropGenerations(GenerationsAction[Drop, Drop]):
    """Drop an unfinished rebuild, or else the generations that do not serve."""

    title = "drop generations"
    verb = "drop"

    def plan(self, ground: Ground) -> Drop:
        with checked_stores(ground.settings) as stores:
            return rebuild.plan_drop(stores, self.provider)

    def _work(self, work: Rebuilder, by: str) -> Drop:
        return rebuild.drop_generations(
            work, rebuild.plan_drop(work.stores, self.provider), by, SYSTEM
        )


@dataclass(frozen=True, kw_only=True)
class Replay(ReplayRequest, Action[ReplayPlan, CopyFilled]):
    """Apply the history again, into a copy of a provider instance."""

    title = "replay"
    recorded = ("provider", "into")

    watch: Callable[[CopyProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        check_name(self.into)

    def plan(self, ground: Ground) -> ReplayPlan:
        with checked_stores(ground.settings) as stores:
            return replay.plan_replay(stores, self, by=ground.operator)

    def carry_out(self, ground: Ground) -> CopyFilled:
        """Make the copy, unless it is known, and fill it to its end."""
        with checked_stores(ground.settings) as stores:
            plan = replay.plan_replay(stores, self, by=ground.operator)
            return self._fill(stores, replay.begin_replay(stores, plan, self), ground)

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
        with checked_stores(ground.settings) as stores:
            copy = copies.copy_to_drop(stores, self.name)
        return CopyDropped(**msgspec.structs.asdict(copy))

    def carry_out(self, ground: Ground) -> CopyDropped:
        with checked_stores(ground.settings) as stores:
            copy = copies.copy_to_drop(stores, self.name)
            waits = copies.drop_copy(stores, copy)
        return CopyDropped(
            **msgspec.structs.asdict(copy), executed=True, gone=not waits, waits=waits
        )
