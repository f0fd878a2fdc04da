"""Acts on provider instances: pause, resume, retry at once, move, remove."""

from dataclasses import dataclass
from typing import Final

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations.providers import lifecycle, removal
from memorybus_console.operations.providers.lifecycle import PauseResult, RetryNow
from memorybus_console.operations.providers.removal import Move, Removal
from memorybus_console.operations.stores import checked_stores, locked_stores

NO_REASON: Final = "no reason given"
"""Stands for the reason of a pause, because an empty one would mean that nothing is paused."""


@dataclass(frozen=True, kw_only=True)
class PauseProvider(Action[PauseResult, PauseResult]):
    """Pause an instance's lanes: no events are applied to it, and none is lost."""

    title = "pause provider"
    recorded = ("name",)
    is_harmless = True

    name: str

    def question(self) -> str:
        return f"Pause {self.name}?"

    def plan(self, ground: Ground) -> PauseResult:
        with checked_stores(ground.settings) as stores:
            return lifecycle.plan_pause(stores, self.name, self.reason or NO_REASON)

    def carry_out(self, ground: Ground) -> PauseResult:
        with checked_stores(ground.settings) as stores:
            reason = self.reason or NO_REASON
            return lifecycle.pause_instance(
                stores, self.name, reason, ground.operator, ground.clock
            )


@dataclass(frozen=True, kw_only=True)
class ResumeProvider(Action[PauseResult, PauseResult]):
    """Resume an instance's lanes where they were paused."""

    title = "resume provider"
    recorded = ("name",)
    is_harmless = True

    name: str

    def question(self) -> str:
        return f"Resume {self.name}?"

    def plan(self, ground: Ground) -> PauseResult:
        with checked_stores(ground.settings) as stores:
            return lifecycle.plan_resume(stores, self.name)

    def carry_out(self, ground: Ground) -> PauseResult:
        with checked_stores(ground.settings) as stores:
            return lifecycle.resume_instance(stores, self.name)


@dataclass(frozen=True, kw_only=True)
class RetryProviderNow(Action[RetryNow, RetryNow]):
    """Retry at once whatever waits for its next try, and dead letters if that is wanted."""

    title = "retry provider now"
    recorded = ("name",)
    is_harmless = True

    name: str
    parked: bool = False

    def plan(self, ground: Ground) -> RetryNow:
        with checked_stores(ground.settings) as stores:
            return lifecycle.plan_retry(stores, self.name, parked=self.parked)

    def carry_out(self, ground: Ground) -> RetryNow:
        with checked_stores(ground.settings) as stores:
            plan = lifecycle.plan_retry(stores, self.name, parked=self.parked)
            return lifecycle.retry_now(
                stores, plan, ground.operator, clock=ground.clock, ids=ground.new_id
            )


@dataclass(frozen=True, kw_only=True)
class MoveProvider(Action[Move, Move]):
    """Make this data directory the home of a local provider and of its copies."""

    title = "move provider"
    recorded = ("name",)

    name: str
    force: bool = False

    def plan(self, ground: Ground) -> Move:
        return removal.plan_move(ground.settings, self.name)

    def carry_out(self, ground: Ground) -> Move:
        plan = self.plan(ground)
        return removal.carry_out(ground.settings, plan, force=self.force) if plan.needed else plan


@dataclass(frozen=True, kw_only=True)
class RemoveProvider(Action[Removal, Removal]):
    """Remove an instance's lanes and dead letters from Redis."""

    title = "remove provider"
    recorded = ("name",)
    needs_reason = True

    name: str
    delete_state: bool = False

    def plan(self, ground: Ground) -> Removal:
        with checked_stores(ground.settings) as stores:
            return removal.plan_removal(stores, self.name, delete_state=self.delete_state)

    def carry_out(self, ground: Ground) -> Removal:
        with locked_stores(ground.settings, self.name, "removal", ground.operator) as (stores, _):
            plan = removal.plan_removal(stores, self.name, delete_state=self.delete_state)
            return removal.remove_provider(stores, plan, self.reason, ground.operator, ground.clock)
