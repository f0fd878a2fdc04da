"""Acts on a provider's generations: rebuild, roll back, drop."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from memorybus.query.query import EVERYTHING, Query

from memorybus_console.actions.action import Action, Ground, P_co, R_co
from memorybus_console.actions.providers import checked_stores
from memorybus_console.operations.rebuild import carry_out, drop, plan
from memorybus_console.operations.rebuild.drop import Drop
from memorybus_console.operations.rebuild.plan import RebuildPlan, RebuildRequest
from memorybus_console.operations.rebuild.rebuild import Rebuilder, RebuildResult, open_rebuilder
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
        """Return which generation would serve."""
        return f"would bring {self.to} up to date and let it serve {self.provider} again"

    def is_plan(self) -> bool:
        """Return that it is still to be done."""
        return True


@dataclass(frozen=True, kw_only=True)
class GenerationsAction(Action[P_co, R_co]):
    """An act on a provider's generations, which holds the provider's lock."""

    recorded = ("provider",)
    verb: ClassVar[str]
    """What holds the lock, as other commands name it."""

    provider: str

    def carry_out(self, ground: Ground) -> R_co:
        """Do it while no other command works on the provider."""
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
        query: selects the events that are left out.
        until: the last moment of the past that is taken; "" for all of it.
        whole: whether to take the whole history, including what the live instance leaves out.
        verify: whether the new state must equal the live one, where the two can be compared.
    """

    title = "rebuild"
    verb = "rebuild"

    query: Query = EVERYTHING
    until: str = ""
    whole: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    verify: bool = True

    def plan(self, ground: Ground) -> RebuildPlan:
        """Return what would be done, change nothing."""
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
        return carry_out.rebuild(work, request)


class RollBack(GenerationsAction[PlannedRollback, RebuildResult]):
    """Let the previous generation serve again, once it is up to date."""

    title = "roll back"
    verb = "rollback"

    def plan(self, ground: Ground) -> PlannedRollback:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return PlannedRollback(self.provider, plan.rollback_target(stores, self.provider))

    def _work(self, work: Rebuilder, request: RebuildRequest) -> RebuildResult:
        return carry_out.roll_back(work, request)


class DropGenerations(GenerationsAction[Drop, Drop]):
    """Drop an unfinished rebuild, or else the generations that do not serve."""

    title = "drop generations"
    verb = "drop"

    def plan(self, ground: Ground) -> Drop:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return drop.plan_drop(stores, self.provider)

    def _work(self, work: Rebuilder, request: RebuildRequest) -> Drop:
        return carry_out.drop(work, request)
