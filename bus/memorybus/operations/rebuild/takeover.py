"""One instance takes over from another while both go on: nobody waits for it, nothing is missed.

From some place of the history on the new one answers those who wait for their events, too. When the
old one has passed that place, and the new one is as far, the new one serves, in one step; then the
old one stands still. A reply that both give is one reply: the later takes the place of the earlier
(G8). Where tools act on the world, what both do would be done twice: there the old one stands still
first, and the new one goes on from exactly its place.
"""

from collections.abc import Callable

import msgspec

from memorybus.clock import Clock
from memorybus.errors import MemoryBusError
from memorybus.operations.copies.generations import behind, generations, swapped
from memorybus.operations.copies.kept import KEPT
from memorybus.operations.rebuild.barrier import Barrier
from memorybus.operations.stores import Copies
from memorybus.registry.instances import Live, live_name
from memorybus.registry.pauses import InstancePause, prepared_copy

LEVEL = 0.5
"""Seconds within which the new one is where the old one was: then it may take over."""

TRIES = 100
"""So often that is tried: a log that is written without a pause leaves it a little behind."""


class TakingOver:
    """Takes the steps; each may be taken again. Belongs to one thread.

    Args:
        desk: the stores.
        barrier: of the candidate.
        provider: whose instances.
        clock: time.

    Attributes:
        provider: whose instances.
        held_ms: for how long nobody applied anything, if one relieved the other.
    """

    def __init__(self, desk: Copies, barrier: Barrier, provider: str, clock: Clock) -> None:
        """Take none yet."""
        self._desk = desk
        self._barrier = barrier
        self.provider = provider
        self._clock = clock
        self._since: float | None = None
        self.held_ms = 0

    def check_workers(self) -> None:
        """Make sure that every worker of the provider knows what a swap is.

        Raises:
            MemoryBusError: one would go on with the generation before, whoever serves.
        """
        workers = self._desk.roster.alive()
        old = [one.id for one in workers if self.provider in one.providers and not one.swaps]
        if old:
            raise MemoryBusError(
                f"{', '.join(old)}: of an earlier release, which serves {self.provider} and would "
                f"go on with the generation before; end it, or start it anew with this release, "
                f"then give the same command again"
            )

    def check_ready(self, *, check: bool) -> None:
        """Make sure, as far as can be seen, that a swap can come about.

        Args:
            check: the one that serves must have all there is.

        Raises:
            Stalled: it lacks something, and is paused.
            MemoryBusError: see `check_workers`.
        """
        self.check_workers()
        if check:
            self._barrier.check_goes_on(live_name(self.provider, self._desk.instances.live()))

    def join(self, live: str, candidate: str, *, without: bool = False) -> None:
        """Let a candidate answer, too, and come as far as the live one is.

        Args:
            live: the one that serves.
            candidate: the one that is to.
            without: do without a live one that nobody can serve any more.

        Raises:
            Stalled: one of them does not go on.
            MemoryBusError: somebody else swapped.
        """
        barrier = self._barrier
        barrier.hold_for_sure(candidate)
        alone = barrier.heads()  # so far it may have applied events and answered nobody
        self._mark(live, lambda known: msgspec.structs.replace(known, joining=candidate))
        barrier.open_end(candidate, self.provider)
        barrier.let_go(candidate)
        if without and barrier.is_lost(live):
            self._come_to_the_end(candidate)
            return
        barrier.await_none(
            lambda: behind(barrier.numbers(live), alone),
            f"{live}, which serves, does not come as far as {candidate}",
            mover=live,
        )
        self._level(live, candidate)

    def relieve(self, live: str, candidate: str, *, without: bool = False) -> None:
        """Let both stand still at the same place; the candidate goes on from it when it serves.

        Args:
            live: see `join`.
            candidate: see `join`.
            without: see `join`; the candidate is farther then.

        Raises:
            Stalled: one of them does not come there.
        """
        self._since, barrier = self._clock.monotonic(), self._barrier
        if without and barrier.is_lost(live):
            barrier.open_end(candidate, self.provider)
            self._come_to_the_end(candidate)
            barrier.hold(live)
            barrier.hold(candidate)
            return
        barrier.meet_for_sure(candidate, live, self.provider)
        barrier.open_end(candidate, self.provider)  # who serves goes on, even if we are killed

    def _come_to_the_end(self, candidate: str) -> None:
        """Let a candidate have all there is: nobody shows it how far it has to be."""
        end = self._barrier.heads()
        self._barrier.await_none(
            lambda: behind(self._barrier.numbers(candidate), end),
            f"{candidate} does not come to the end of the history",
            mover=candidate,
        )

    def _level(self, live: str, candidate: str) -> None:
        for _ in range(TRIES):
            since = self._clock.monotonic()
            self._barrier.await_level(candidate, live)
            if self._clock.monotonic() - since < LEVEL:
                return

    def swap(self, live: str, candidate: str, by: str, reason: str, *, back: bool = False) -> None:
        """Let the candidate serve, in one step; the old one goes on and answers, too.

        Raises:
            MemoryBusError: somebody else swapped, or see `check_workers`.
        """
        self.check_workers()
        at = self._clock.now_ms()
        self._mark(live, lambda known: swapped(known, candidate, at, by, reason, back=back))

    def end(self, live: str, previous: str) -> None:
        """Let the old one stand still, when the new one serves, and all that served before.

        Raises:
            Stalled: nobody gives its lanes up.
            MemoryBusError: somebody else swapped.
        """
        self._hand_on(live, previous)
        self._keep_all(live)
        self._go_on(live)
        self._barrier.await_none(
            lambda: sum(lane.owned for lane in self._desk.lanes.states(previous)),
            f"{live} serves now, but the lanes of {previous} are not given up",
        )
        self._mark(live, lambda known: msgspec.structs.replace(known, leaving=""))

    def _go_on(self, live: str) -> None:
        """Let the new one go on, if it stands still for itself."""
        if prepared_copy(self._desk.instances.pauses().get(live)) != live:
            return
        self._barrier.let_go(live)
        self._barrier.await_owned(live, f"{live} serves now, but its lanes have no owner")
        if self._since is not None:
            self.held_ms = round((self._clock.monotonic() - self._since) * 1000)

    def _hand_on(self, live: str, previous: str) -> None:
        """Let a provider that somebody paused stay so: whoever serves it now stands still."""
        pause = self._barrier.pause_of(previous)
        if pause is not None and not pause.reason.startswith(KEPT):
            self._desk.instances.pause(live, pause)

    def keep(self, live: str, previous: str) -> None:
        """Let an instance stand still that is kept for a rollback."""
        kept = f"{KEPT} {self.provider}: {live} serves"
        self._desk.instances.set_pause(previous, InstancePause(kept, "", self._clock.now_ms()))

    def _keep_all(self, live: str) -> None:
        """Let all stand still that served once: a rollback that was killed had one go on."""
        for one in generations(self.provider, self._desk.instances.look()):
            if one.state in ("kept", "unused"):
                self.keep(live, one.name)

    def part(self, live: str) -> None:
        """Let nobody answer but the one that serves: what was begun is not gone on with."""
        if self.provider in self._desk.instances.live():
            self._mark(live, lambda known: msgspec.structs.replace(known, joining=""))

    def _mark(self, live: str, change: Callable[[Live], Live]) -> None:
        found = self._desk.instances.live().get(self.provider)
        known = found or Live(self.provider)
        same = known.instance == live
        if not same or not self._desk.instances.swap(self.provider, found, change(known)):
            raise MemoryBusError(f"somebody else swapped {self.provider} meanwhile; begin again")
