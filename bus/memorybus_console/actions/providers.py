"""Acts on provider instances: pause, resume, retry at once, move, remove."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations.providers import lifecycle, move, removal, retry_now
from memorybus_console.operations.providers.lifecycle import PauseResult
from memorybus_console.operations.providers.move import Move
from memorybus_console.operations.providers.removal import Removal
from memorybus_console.operations.providers.retry_now import RetryNow
from memorybus_console.operations.stores import Stores

NO_REASON: Final = "no reason given"
"""Stands for the reason of a pause, because an empty one would mean that nothing is paused."""


@contextmanager
def checked_stores(ground: Ground) -> Iterator[Stores]:
    """Open the stores of the log, and check them.

    Raises:
        WrongPartitionCount: the log was created with another number of partitions.
    """
    with Stores(ground.settings) as stores:
        stores.check_partitions()
        yield stores


@dataclass(frozen=True, kw_only=True)
class PauseProvider(Action[PauseResult, PauseResult]):
    """Pause an instance's lanes: no events are applied to it, and none is lost."""

    title = "pause provider"
    recorded = ("name",)
    is_harmless = True

    name: str

    def question(self) -> str:
        """Return what to ask an operator who has seen the plan."""
        return f"Pause {self.name}?"

    def plan(self, ground: Ground) -> PauseResult:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return lifecycle.plan_pause(stores, self.name, self.reason or NO_REASON)

    def carry_out(self, ground: Ground) -> PauseResult:
        """Pause them."""
        with checked_stores(ground) as stores:
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
        """Return what to ask an operator who has seen the plan."""
        return f"Resume {self.name}?"

    def plan(self, ground: Ground) -> PauseResult:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return lifecycle.plan_resume(stores, self.name)

    def carry_out(self, ground: Ground) -> PauseResult:
        """Resume them."""
        with checked_stores(ground) as stores:
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
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return retry_now.plan_retry(stores, self.name, parked=self.parked)

    def carry_out(self, ground: Ground) -> RetryNow:
        """Let workers retry."""
        with checked_stores(ground) as stores:
            plan = retry_now.plan_retry(stores, self.name, parked=self.parked)
            return retry_now.retry_now(
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
        """Return what would be done; change nothing."""
        return move.plan_move(ground.settings, self.name)

    def carry_out(self, ground: Ground) -> Move:
        """Move it, unless it is here already."""
        plan = self.plan(ground)
        return move.carry_out(ground.settings, plan, force=self.force) if plan.needed else plan


@dataclass(frozen=True, kw_only=True)
class RemoveProvider(Action[Removal, Removal]):
    """Remove an instance's lanes and dead letters from Redis."""

    title = "remove provider"
    recorded = ("name",)
    needs_reason = True

    name: str
    delete_state: bool = False

    def plan(self, ground: Ground) -> Removal:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return removal.plan_removal(stores, self.name, delete_state=self.delete_state)

    def carry_out(self, ground: Ground) -> Removal:
        """Remove them, while no other command works on the provider."""
        with removal.open_for_removal(ground.settings, self.name, ground.operator) as stores:
            plan = removal.plan_removal(stores, self.name, delete_state=self.delete_state)
            return removal.remove_provider(stores, plan, self.reason, ground.operator, ground.clock)
