"""The short pause in which a candidate and the live instance stand at the same position (G8).

Only lanes pause: agents can publish, and recall answers from the present state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.events import OperatorActed
from memorybus.log.stream import START
from memorybus.query.ranges import WHOLE, Plan
from memorybus.registry.instances import Instance, InstancePause, lasting_pause, over_lasting
from memorybus.registry.lanes import LaneState
from memorybus.registry.rebuild_lock import RebuildLock

from memorybus_console.operations.copies.generations import plan_ending_at, plan_without_end
from memorybus_console.operations.moments import (
    PartitionNumbers,
    count_behind,
    read_heads,
    read_numbers,
)
from memorybus_console.operations.stores import Stores

LOOK_EVERY = 0.05  # seconds between two reads of the lanes

STALL_SECONDS = 60.0  # seconds without progress after which a step is given up

_NOTICED_WITHIN = 2
"""Heartbeats of the slowest worker after which all workers know that a command is at work."""

OBEYED_WITHIN = 0.4
"""Seconds after which workers that know of the command obey a pause: they check every 0.1 s."""

_UNOWNED_FOR = 5.0  # seconds without an owner after which an instance counts as not served

_MAX_RECORDS = 100  # how many records of acts are looked for after a paused lane

_MAX_TRIES = 5  # how often we try to bring both instances to one position


class LanesStalled(MemoryBusError):
    """Lanes did not reach the position they should; the message says which, and what to do."""


@dataclass
class LanePause:
    """Pauses the lanes of instances, resumes them, and waits for them. Belongs to one thread.

    Args:
        lock: the command's lock, which is kept alive while we wait.
        patience: see `STALL_SECONDS`.
    """

    stores: Stores
    lock: RebuildLock
    why: InstancePause
    clock: Clock
    patience: float = STALL_SECONDS
    since: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._made_at = self.clock.monotonic()

    @property
    def milliseconds(self) -> int:
        """For how long `meet` has paused the live instance; 0 if it has not."""
        return 0 if self.since is None else round((self.clock.monotonic() - self.since) * 1000)

    # -- reading ----------------------------------------------------------------------------------

    def numbers(self, name: str) -> PartitionNumbers:
        """Return the positions of an instance's lanes.

        A lane that a person paused counts as past the records of operators' acts that follow: no
        provider gets them, and the command that reads this has just written one.
        """
        numbers = read_numbers(self.stores, name)
        if not self.paused_by_person(name):
            return numbers
        heads = self.heads()
        return {p: self._pass_records(p, n, heads.get(p, n)) for p, n in numbers.items()}

    def _pass_records(self, partition: int, n: int, head: int) -> int:
        """Return the number of the last of the records that follow `n` at once; `n` for none."""
        if not 0 < head - n <= _MAX_RECORDS:
            return n
        place = self.stores.history.place(partition, n)
        after = place.entry if place else START
        for event in self.stores.history.log.read(partition, after, head - n):
            if event.position.n != n + 1 or not isinstance(event.envelope.event, OperatorActed):
                break
            n += 1
        return n

    def heads(self) -> PartitionNumbers:
        """Return where the history ends now."""
        return read_heads(self.stores)

    def paused_by_person(self, name: str) -> InstancePause | None:
        """Return the pause of an instance that no command set; None if there is none."""
        return lasting_pause(self.stores.instances.pauses().get(name))

    def check_complete(self, name: str) -> None:
        """Make sure that an instance is not paused while it lacks a part of the history.

        Raises:
            LanesStalled: it is, and would never catch up.
        """
        behind = count_behind(self.numbers(name), self.heads())
        if behind:
            self._check_mover(name, f"{name} lacks a part of the history", behind)

    def is_unserved(self, name: str) -> bool:
        """Return whether no worker owns a lane of an instance or takes one soon."""
        until = self.clock.monotonic() + _UNOWNED_FOR
        while not any(lane.owned for lane in self.stores.lanes.states(name)):
            if self.paused_by_person(name) or self.clock.monotonic() > until:
                return True
            self.clock.sleep(LOOK_EVERY)
        return False

    # -- pausing ----------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """Pause an instance's lanes, and wait until no worker owns one.

        Raises:
            LanesStalled: a worker keeps one.
        """
        self.stores.instances.change_pause(name, lambda pause: over_lasting(pause, self.why))
        self.wait_for_none(
            lambda: sum(lane.owned for lane in self.stores.lanes.states(name)),
            f"the lanes of {name} are not given up",
        )

    def begin_before_deletion(self, name: str) -> None:
        """Pause an instance, even if a worker has not noticed this command yet.

        Raises:
            LanesStalled: a worker keeps a lane.
        """
        self.begin(name)
        self.clock.sleep(self._notice_time())
        self.begin(name)

    def end(self, name: str) -> None:
        """Resume an instance's lanes unless a person paused it.

        We have the lock, so any command that paused it is this one or has ended.
        """
        self.stores.instances.change_pause(name, lasting_pause)

    def change_plan(self, name: str, provider: str, change: Callable[[Plan], Plan]) -> None:
        instances = self.stores.instances
        while True:
            instance = instances.get(name)
            if instance is None:
                self._add_plan(name, provider, change(WHOLE))
                return
            now = change(instance.plan)
            if not instance.is_copy and now == WHOLE and instance.purpose == "rebuild":
                # This record was only made to give the first generation an end.
                instances.remove(name)
                return
            changed = msgspec.structs.replace(instance, plan=now)
            if now == instance.plan or instances.change(instance, changed):
                return

    def _add_plan(self, name: str, provider: str, plan: Plan) -> None:
        if plan != WHOLE:
            self.stores.add_instance(
                Instance(name=name, provider=provider, plan=plan, purpose="rebuild")
            )

    def open_end(self, name: str, provider: str) -> None:
        """Let an instance take future events, too."""
        self.change_plan(name, provider, plan_without_end)

    # -- reaching one position --------------------------------------------------------------------

    def meet(self, candidate: str, live: str, provider: str) -> None:
        """Bring both instances to the same position of the history, and leave both paused there.

        The candidate's plan may end at that position afterwards; `open_end` opens it again.

        Raises:
            LanesStalled: they do not reach one position; the caller has to resume them.
        """
        self.clock.sleep(max(0.0, self._made_at + self._notice_time() - self.clock.monotonic()))
        for _ in range(_MAX_TRIES):
            # The candidate stops first, so that the live instance is never behind it.
            self.begin(candidate)
            self.end(live)
            self.wait_until_level(live, candidate)
            there = self._stop_live(live)
            if count_behind(self.numbers(candidate), there):
                self._bring_up_to(candidate, provider, there)
            # A worker may have taken a lane meanwhile; then another try is needed.
            self.begin(live)
            self.begin(candidate)
            if self.numbers(live) == self.numbers(candidate):
                return
        raise LanesStalled(
            f"{live} and {candidate} did not reach the same position in {_MAX_TRIES} tries, "
            f"because workers took lanes in between; nothing was swapped. See memorybus status, "
            f"then run the same command again"
        )

    def _notice_time(self) -> float:
        """Return the seconds after which even the slowest worker has seen what we wrote."""
        return _NOTICED_WITHIN * max(
            (worker.beat for worker in self.stores.roster.alive()), default=1.0
        )

    def _stop_live(self, live: str) -> PartitionNumbers:
        """Pause the live instance when none of its events is half done; return its positions."""
        for _ in range(_MAX_TRIES):
            self.since = self.clock.monotonic()
            self.begin(live)
            self.clock.sleep(OBEYED_WITHIN)
            self.begin(live)
            lanes = self.stores.lanes.states(live)
            if all(lane.settled for lane in lanes):
                return dict(enumerate(lane.n for lane in lanes))
            self.end(live)
            self.since = None
            self.wait_for_none(
                lambda: sum(not lane.settled for lane in self.stores.lanes.states(live)),
                f"{live} tries an event again and again",
                mover=live,
            )
        raise LanesStalled(
            f"{live} had an event half done in each of {_MAX_TRIES} tries; nothing was swapped. "
            f"See memorybus status, then run the same command again"
        )

    def _bring_up_to(self, candidate: str, provider: str, there: PartitionNumbers) -> None:
        """Let a candidate advance to a position and no further."""
        self.change_plan(candidate, provider, lambda plan: plan_ending_at(plan, there))
        self.end(candidate)
        self.wait_for_none(
            lambda: count_behind(self.numbers(candidate), there),
            f"{candidate} does not come as far as the live instance is",
            mover=candidate,
        )

    # -- waiting ----------------------------------------------------------------------------------

    def wait_until_owned(self, name: str) -> None:
        """Wait until each lane of an instance has an owner, unless a person paused it.

        Raises:
            LanesStalled: they do not get one.
        """

        def unowned() -> int:
            if self.paused_by_person(name):
                return 0
            return sum(not lane.owned for lane in self.stores.lanes.states(name))

        self.wait_for_none(unowned, f"{name} serves now, but its lanes have no owner")

    def wait_until_level(self, slow: str, fast: str) -> None:
        """Wait until an instance reaches the position that another one has now.

        Raises:
            LanesStalled: it does not reach it.
        """
        there = self.numbers(fast)
        self.wait_for_none(
            lambda: count_behind(self.numbers(slow), there),
            f"{slow} does not come as far as {fast}",
            mover=slow,
        )

    def wait_for_none(
        self,
        left: Callable[[], int],
        what: str,
        enough: int = 0,
        tell: Callable[[int], Any] = lambda left: None,
        mover: str = "",
    ) -> None:
        """Wait until `left()` is at most `enough`, as long as it shrinks.

        Raises:
            LanesStalled: it has not shrunk for a while, or a person paused `mover`, the instance
                that has to advance for that.
        """
        least, since, kept = left(), self.clock.monotonic(), -math.inf
        now = least
        while now > enough:
            tell(now)
            moment = self.clock.monotonic()
            if moment - since > self.patience:
                raise LanesStalled(
                    f"{what}: {now} left for {self.patience:g} s; see memorybus status"
                )
            if moment - kept > 1.0:
                self.lock.keep()
                self._check_mover(mover, what, now)
                kept = moment
            self.clock.sleep(LOOK_EVERY)
            now = left()
            if now < least:
                least, since = now, self.clock.monotonic()
        tell(now)
        self.lock.keep()

    def _check_mover(self, name: str, what: str, left: int) -> None:
        pause = self.paused_by_person(name)
        if pause is not None:
            raise LanesStalled(
                f"{name} is paused ({pause.reason}), and {what}: {left} left; first: memorybus "
                f"provider resume {name}"
            )


def count_parked(lanes: list[LaneState]) -> int:
    """Return how many events these lanes have parked."""
    return sum(lane.parked for lane in lanes)
