"""Acts on copies: fill one with the history, drop one."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import msgspec
from memorybus.config.path_names import check_name
from memorybus.query.query import EVERYTHING, Query

from memorybus_console.actions.action import Action, Ground
from memorybus_console.actions.providers import checked_stores
from memorybus_console.operations.copies import copies, filling, replay
from memorybus_console.operations.copies.copies import CopyDropped
from memorybus_console.operations.copies.filling import CopyProgress, LocalWorker
from memorybus_console.operations.copies.replay import CopyFilled, ReplayPlan, ReplayRequest
from memorybus_console.operations.stores import Stores


@dataclass(frozen=True, kw_only=True)
class Replay(Action[ReplayPlan, CopyFilled]):
    """Apply the history again, into a copy of a provider instance.

    Attributes:
        provider: the instance whose kind and options the copy has.
        since: the first moment; "" for the beginning.
        until: the last moment; "" for now.
        rate: events a second at most; None for the rate with which the copy was begun.
        force: whether the target may already hold something.
    """

    title = "replay"
    recorded = ("provider", "into")

    provider: str
    into: str
    query: Query = EVERYTHING
    since: str = ""
    until: str = ""
    rate: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    watch: Callable[[CopyProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        """Check the copy's name."""
        check_name(self.into)

    def plan(self, ground: Ground) -> ReplayPlan:
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            return self._plan(stores, ground)

    def carry_out(self, ground: Ground) -> CopyFilled:
        """Make the copy, unless it is known, and fill it to its end."""
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
            raise filling.NobodyServes(plan.describe_unserved())
        parked = 0
        with worker or nullcontext():
            for progress in filling.follow_progress(stores, plan.instance, worker):
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
        """Return what would be done; change nothing."""
        with checked_stores(ground) as stores:
            copy = copies.copy_to_drop(stores, self.name)
        return CopyDropped(**msgspec.structs.asdict(copy))

    def carry_out(self, ground: Ground) -> CopyDropped:
        """Drop it, and wait until it is removed."""
        with checked_stores(ground) as stores:
            copy = copies.copy_to_drop(stores, self.name)
            waits = copies.drop_copy(stores, copy)
        return CopyDropped(
            **msgspec.structs.asdict(copy), executed=True, gone=not waits, waits=waits
        )
