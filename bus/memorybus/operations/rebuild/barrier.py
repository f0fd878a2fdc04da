"""Two instances at exactly the same place of the history: what some comparisons need (G8).

The candidate stands still first, then the live one, which has passed it meanwhile; as soon as that
is looked at it goes on. Then the candidate goes on to the live one's numbers and not further. What
is published meanwhile waits in the log.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from memorybus.clock import Clock
from memorybus.operations.copies.generations import Numbers, behind, ended, opened
from memorybus.operations.rebuild.waiting import PATIENCE, Stalled, Waiting
from memorybus.operations.stores import Copies
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.instances import Instance
from memorybus.registry.lanes import LaneState
from memorybus.registry.pauses import InstancePause, lasting_pause, over_lasting
from memorybus.registry.rebuild_lock import RebuildLock

SURE = 2.0
"""Seconds without an owner after which every worker has seen a hold: more than a heartbeat."""

_TRIES = 5
"""So often the live one is asked to stand still with nothing under way."""


class Barrier(Waiting):
    """Holds instances, lets them go, and waits for them. Belongs to one thread.

    Args:
        desk: the stores.
        lock: kept while we wait.
        why: what is told of the holds.
        clock: time.
        patience: see `PATIENCE`.

    Attributes:
        held_ms: for how long a live one stood still for `meet`.
    """

    def __init__(
        self,
        desk: Copies,
        lock: RebuildLock,
        why: InstancePause,
        clock: Clock,
        patience: float = PATIENCE,
    ) -> None:
        """Hold nothing yet."""
        super().__init__(desk, lock, clock, patience)
        self._why = why
        self.held_ms = 0

    # -- acting -----------------------------------------------------------------------------------

    def hold(self, name: str) -> None:
        """Let an instance's lanes stand still, and wait until nobody owns one.

        Raises:
            Stalled: somebody goes on owning one.
        """
        self._desk.instances.change_pause(name, lambda known: over_lasting(known, self._why))
        self.await_none(
            lambda: sum(lane.owned for lane in self._desk.lanes.states(name)),
            f"the lanes of {name} are not given up",
        )

    def hold_for_sure(self, name: str) -> None:
        """Hold an instance so that whoever owns a lane of it later knows what is decided now.

        Raises:
            Stalled: somebody goes on owning one.
        """
        self.hold(name)
        self._clock.sleep(SURE)  # a worker that has not heard of it may have taken a lane since
        self.hold(name)

    def let_go(self, name: str) -> None:
        """Let an instance's lanes go on, if a command held it and nobody paused it.

        With the lock it was ours, or one that is gone.
        """
        self._desk.instances.change_pause(name, lasting_pause)

    def plan(self, name: str, provider: str, change: Callable[[Plan], Plan]) -> None:
        """Change what an instance takes; it stands still meanwhile."""
        instances = self._desk.instances
        while True:
            known = instances.get(name)
            if known is None:
                self._add_plan(name, provider, change(WHOLE))
                return
            now = change(known.plan)
            if not known.is_copy and now == WHOLE and known.purpose == "rebuild":
                instances.remove(name)  # we made it to end the first of all
                return
            changed = msgspec.structs.replace(known, plan=now)
            if now == known.plan or instances.change(known, changed):
                return

    def _add_plan(self, name: str, provider: str, plan: Plan) -> None:
        if plan != WHOLE:
            self._desk.make(Instance(name=name, provider=provider, plan=plan, purpose="rebuild"))

    # -- meeting ----------------------------------------------------------------------------------

    def meet(
        self,
        candidate: str,
        live: str,
        provider: str,
        look: Callable[[], Any] = lambda: None,
        *,
        stay: bool = False,
    ) -> None:
        """Bring a candidate to exactly where the live one was when we looked; it stands still then.

        Args:
            candidate: the one that is to serve.
            live: the one that does; it stands still while it is looked at, and no longer.
            provider: of which they are.
            look: looks at the live one.
            stay: let the live one stand still afterwards, too.

        Raises:
            Stalled: one of them does not come there; whoever called lets them go.
        """
        self.hold(candidate)
        self.let_go(live)
        self.await_level(live, candidate)
        numbers = self._at_rest(live) if stay else self._looked(live, look)
        self.plan(candidate, provider, lambda plan: ended(plan, numbers))
        self.let_go(candidate)
        self.await_none(
            lambda: behind(self.numbers(candidate), numbers),
            f"{candidate} does not come as far as {live} was when it was looked at",
            mover=candidate,
        )
        self.hold(candidate)

    def meet_for_sure(self, candidate: str, live: str, provider: str) -> None:
        """Bring both to the same place, and let both stand still there.

        Raises:
            Stalled: one of them does not come there.
        """
        for _ in range(_TRIES):
            self.meet(candidate, live, provider, stay=True)
            self._clock.sleep(SURE)  # who had not heard of a hold may have taken a lane since
            self.hold(live)
            self.hold(candidate)
            if self.numbers(live) == self.numbers(candidate):
                return
        raise Stalled(f"{live} and {candidate} never stand at one place: see memorybus status")

    def _looked(self, live: str, look: Callable[[], Any]) -> Numbers:
        """Look at the live one while it stands still; return where it is."""
        since, free = self._clock.monotonic(), self._free(live)
        try:
            numbers = self._at_rest(live)
            look()
        finally:
            self.let_go(live)
        self.await_owned(live, f"the lanes of {live} have no owner", free)
        self.held_ms += round((self._clock.monotonic() - since) * 1000)
        return numbers

    def _at_rest(self, live: str) -> Numbers:
        """Hold the live one at a moment when nothing of it is under way; return where it is."""
        for _ in range(_TRIES):
            self.hold(live)
            lanes = self._desk.lanes.states(live)
            if all(lane.settled for lane in lanes):
                return self.numbers(live)
            self.let_go(live)
            self.await_none(
                lambda: sum(not lane.settled for lane in self._desk.lanes.states(live)),
                f"{live} tries an event again and again",
                mover=live,
            )
        raise Stalled(f"{live} never stands still with nothing under way: see memorybus status")

    def open_end(self, name: str, provider: str) -> None:
        """Let an instance take what is to come, too."""
        self.plan(name, provider, opened)


def parked(lanes: list[LaneState]) -> int:
    """Return how many events were put aside."""
    return sum(lane.parked for lane in lanes)
