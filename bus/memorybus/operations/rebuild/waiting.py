"""What a command that swaps or compares waits for: that lanes come somewhere, or have owners."""

import math
from collections.abc import Callable
from typing import Any

from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.operations.copies.generations import Numbers, behind
from memorybus.operations.stores import Copies
from memorybus.registry.pauses import InstancePause, lasting_pause
from memorybus.registry.rebuild_lock import RebuildLock

LOOK = 0.1
"""Seconds between looks."""

PATIENCE = 60.0
"""Seconds for which nothing may move before a step is given up."""

_REST = 5.0
"""Seconds without an owner after which nobody seems able to serve an instance."""


class Stalled(MemoryBusError):
    """Lanes did not come to where they should; the message says which, and what to do."""


class Waiting:
    """Looks at instances, and waits for them. Belongs to one thread.

    Args:
        desk: the stores.
        lock: kept while we wait.
        clock: time.
        patience: see `PATIENCE`.
    """

    def __init__(
        self, desk: Copies, lock: RebuildLock, clock: Clock, patience: float = PATIENCE
    ) -> None:
        """Look at nothing yet."""
        self._desk = desk
        self._lock = lock
        self._clock = clock
        self._patience = patience

    # -- looking ----------------------------------------------------------------------------------

    def numbers(self, name: str) -> Numbers:
        """Return where an instance's lanes are."""
        return dict(enumerate(lane.n for lane in self._desk.lanes.states(name)))

    def heads(self) -> Numbers:
        """Return where the history ends now."""
        return {head.partition: head.n for head in self._desk.history.log.heads()}

    def pause_of(self, name: str) -> InstancePause | None:
        """Return how somebody else than a command holds an instance; None if nobody does."""
        return lasting_pause(self._desk.instances.pauses().get(name))

    def check_goes_on(self, name: str) -> None:
        """Make sure that an instance that lacks something is not paused.

        Raises:
            Stalled: it is.
        """
        left = behind(self.numbers(name), self.heads())
        if left:
            self._check_mover(name, f"{name} lacks a part of the history", left)

    # -- waiting ----------------------------------------------------------------------------------

    def await_owned(self, name: str, what: str, free: int = 0) -> None:
        """Wait until an instance's lanes have owners again, but for some; not if it is paused.

        Raises:
            Stalled: they get none; `what` is what is told.
        """
        self.await_none(lambda: 0 if self.pause_of(name) else self._free(name) - free, what)

    def _free(self, name: str) -> int:
        return sum(not lane.owned for lane in self._desk.lanes.states(name))

    def await_level(self, slow: str, fast: str) -> None:
        """Wait until an instance is where another one is now.

        Raises:
            Stalled: it does not come there.
        """
        at = self.numbers(fast)
        self.await_none(
            lambda: behind(self.numbers(slow), at),
            f"{slow} does not come as far as {fast}",
            mover=slow,
        )

    def is_lost(self, live: str) -> bool:
        """Say whether nobody owns a lane of the live one, or will soon."""
        until = self._clock.monotonic() + _REST
        while not any(lane.owned for lane in self._desk.lanes.states(live)):
            if self.pause_of(live) or self._clock.monotonic() > until:
                return True
            self._clock.sleep(LOOK)
        return False

    def await_none(
        self,
        left: Callable[[], int],
        what: str,
        enough: int = 0,
        tell: Callable[[int], Any] = lambda left: None,
        mover: str = "",
    ) -> None:
        """Wait until nothing is left, or hardly anything, for as long as it becomes less.

        Raises:
            Stalled: it has not become less for a while, or `mover`, the instance that has to go on
                for that, is paused.
        """
        least, since, kept = left(), self._clock.monotonic(), -math.inf
        now = least
        while now > enough:
            tell(now)
            moment = self._clock.monotonic()
            if moment - since > self._patience:
                raise Stalled(f"{what}: {now} left for {self._patience:g} s; see memorybus status")
            if moment - kept > 1.0:
                self._lock.keep()
                self._check_mover(mover, what, now)
                kept = moment
            self._clock.sleep(LOOK)
            now = left()
            if now < least:
                least, since = now, self._clock.monotonic()
        tell(now)
        self._lock.keep()

    def _check_mover(self, name: str, what: str, left: int) -> None:
        pause = self.pause_of(name)
        if pause is not None:
            raise Stalled(
                f"{name} is paused ({pause.reason}), and {what}: {left} left; first: memorybus "
                f"provider resume {name}"
            )
