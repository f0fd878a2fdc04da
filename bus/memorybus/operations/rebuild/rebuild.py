"""``memorybus rebuild``: a fresh generation beside the live one, filled, compared, swapped (G8).

Every step may be done again: whoever kills the command finds the same one going on. The live
instance goes on all the time and serves until the one step in which the other takes over; it stands
still for a moment only if its state changes faster than the two can be compared.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.operations.copies.generations import behind
from memorybus.operations.copies.kept import KEPT
from memorybus.operations.rebuild.agreement import agree, differing
from memorybus.operations.rebuild.barrier import Barrier, parked
from memorybus.operations.rebuild.compare import Compared, Comparison
from memorybus.operations.rebuild.plan import Prepared
from memorybus.operations.rebuild.takeover import TakingOver
from memorybus.operations.rebuild.waiting import LOOK
from memorybus.operations.stores import Copies
from memorybus.processes.child import described
from memorybus.recall.purge import purge
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import here
from memorybus.registry.instances import Instance, live_name
from memorybus.registry.pauses import held_for
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus.testing import CrashPoint, crash_points, no_crash

CLOSE = 500
"""Places of the history that may be missing when a copy counts as filled: these take a moment."""

_SETTLE = 5.0
"""Seconds after which what only a candidate has put aside is not put aside by the live one."""

Tell = Callable[[str, int, int], Any]
"""Is told what is done now, and how many places of how many."""


class RebuildDiffers(MemoryBusError):
    """The rebuilt state is not the live one; nothing was swapped."""


class Rebuilt(msgspec.Struct, frozen=True):
    """What was done.

    Attributes:
        provider: whose state.
        live: the instance that serves now.
        previous: the one before; it stands still, for a rollback.
        compared: how the two states compared; None if they were not.
        parked: events that the new one put aside.
        purged: warm results that went.
        held_ms: for how long nothing was applied; usually 0.
    """

    provider: str
    live: str
    previous: str
    compared: Compared | None
    parked: int
    purged: int
    held_ms: int


@contextmanager
def rebuilder(
    settings: Settings, provider: str, what: str, by: str, tell: Tell
) -> "Iterator[Rebuilder]":
    """Give one that has the provider's lock, for as long as the block lasts.

    Raises:
        RebuildRuns: another command has it.
        LogUnavailable: Redis is away.
    """
    redis = connect_redis(settings)
    try:
        with (
            RebuildLock(redis, Keys(settings.namespace), provider, what, by) as lock,
            Copies(settings, lock) as desk,
        ):
            desk.check()
            crash = crash_points(settings.crash_at)
            yield Rebuilder(desk, partial(purge, redis, settings), lock, what, tell, SYSTEM, crash)
    finally:
        redis.close()


class Rebuilder:
    """Carries a swap out, or on. Belongs to one thread.

    Passes the crash points ``rebuild.made``, ``.filled``, ``.verified``, ``.met``, ``.swapped``,
    ``.purged`` and ``.ended``.

    Attributes:
        desk: the stores.
        inspector: looks into instances.

    Args:
        desk: the stores.
        purge: deletes a provider's warm results, and says how many there were.
        lock: taken for the provider.
        what: the command, in a word: ``rebuild`` or ``rollback``.
        tell: is told how far it is.
        clock: time.
        crash: crash points of fault tests.
    """

    def __init__(
        self,
        desk: Copies,
        purge: Callable[[str], int],
        lock: RebuildLock,
        what: str,
        tell: Tell,
        clock: Clock,
        crash: CrashPoint = no_crash,
    ) -> None:
        """Do nothing yet."""
        self.desk = desk
        self._purge = purge
        self._lock = lock
        self._what = what
        self._tell = tell
        self._clock = clock
        self._crash = crash
        self.inspector = InstanceInspector(desk.settings, clock)

    def make(self, found: Prepared, *, check: bool) -> None:
        """Make the new generation known, if a swap can be; workers of its provider fill it."""
        if not found.known:
            copy = found.instance
            barrier = self.barrier(copy.provider, copy.name, copy.made_by)
            TakingOver(self.desk, barrier, copy.provider, self._clock).check_ready(check=check)
            self.add(copy)
            self._crash("rebuild.made")

    def add(self, copy: Instance) -> None:
        """Make a copy known; a local one lives where its provider does."""
        home = self.desk.homes.all().get(copy.provider)
        if home is not None:
            self.desk.homes.move(copy.name, home)  # before it is served anywhere
        elif described(self.desk.settings, copy.provider).placement == "local":
            self.desk.homes.move(copy.name, here(self.desk.settings))
        self.desk.make(copy)

    def barrier(self, provider: str, candidate: str, by: str) -> Barrier:
        """Return what holds instances for a candidate."""
        why = held_for(self._what, provider, candidate, by, self._clock.now_ms())
        return Barrier(self.desk, self._lock, why, self._clock)

    def comparison(self, provider: str, first: str, second: str) -> Comparison:
        """Return what compares two instances, and tell of it."""
        self._tell("compares", 0, 0)
        return Comparison(self.inspector, provider, first, second, self._lock.keep)

    def swap(
        self, candidate: str, provider: str, by: str, reason: str, *, check: bool, alike: bool
    ) -> Rebuilt:
        """Fill a candidate, compare it, and let it serve.

        Args:
            candidate: the instance.
            provider: of which.
            by: who wants it.
            reason: why.
            check: refuse a state that is not as it should be.
            alike: it must equal the live one's.

        Raises:
            Stalled: lanes do not come to where they should.
            RebuildDiffers: the states are not the same.
            MemoryBusError: something else; in every case the live one goes on as before.
        """
        live = live_name(provider, self.desk.instances.live())
        barrier = self.barrier(provider, candidate, by)
        taking = TakingOver(self.desk, barrier, provider, self._clock)
        try:
            taking.check_ready(check=check)
            barrier.let_go(live)  # a command that was killed may have held it
            self.fill(barrier, candidate, provider)
            self._crash("rebuild.filled")
            compared = self._checked(barrier, (provider, live, candidate), check=check, alike=alike)
            self._crash("rebuild.verified")
            self._tell("takes over", 0, 0)
            if self._acts(provider):
                taking.relieve(live, candidate, without=not check)
            else:
                taking.join(live, candidate, without=not check)
            self._crash("rebuild.met")
            taking.swap(live, candidate, by, reason, back=self._what == "rollback")
        except BaseException:
            self._undo(barrier, taking, live, candidate)
            raise
        self._crash("rebuild.swapped")
        return self._end(barrier, taking, candidate, live, compared)

    def finish(self, provider: str, by: str) -> Rebuilt:
        """Do what is left of a swap whose command was killed after it."""
        known = self.desk.instances.live()[provider]
        barrier = self.barrier(provider, known.instance, by)
        taking = TakingOver(self.desk, barrier, provider, self._clock)
        return self._end(barrier, taking, known.instance, known.leaving, None)

    def _undo(self, barrier: Barrier, taking: TakingOver, live: str, candidate: str) -> None:
        """Let both go on as before; without Redis, the same command or an operator does so."""
        with suppress(MemoryBusError):
            taking.part(live)  # not if the other serves already: then the same command goes on
            barrier.let_go(live)
            barrier.open_end(candidate, taking.provider)
            barrier.let_go(candidate)
            known = self.desk.instances.live().get(taking.provider)
            if known is not None and (known.instance, known.previous) == (live, candidate):
                taking.keep(live, candidate)

    # -- steps ------------------------------------------------------------------------------------

    def fill(self, barrier: Barrier, candidate: str, provider: str) -> None:
        """Wait until a copy has nearly all that the history holds.

        Raises:
            Stalled: nothing moves.
        """
        barrier.let_go(candidate)
        if (pause := barrier.pause_of(candidate)) and pause.reason.startswith(KEPT):
            self.desk.instances.let_go(candidate)
        barrier.open_end(candidate, provider)
        total = sum(barrier.heads().values())
        barrier.await_none(
            lambda: behind(barrier.numbers(candidate), barrier.heads()),
            f"{candidate} is not filled; does a worker serve {provider}?",
            enough=CLOSE,
            mover=candidate,
            tell=lambda left: self._tell("fills", max(0, total - left), total),
        )

    def _checked(
        self, barrier: Barrier, who: tuple[str, str, str], *, check: bool, alike: bool
    ) -> Compared | None:
        """Compare the two where that can be; refuse what is not as it should be."""
        provider, live, candidate = who
        compared = None
        if alike:
            try:
                one = self.comparison(provider, live, candidate)
                compared = agree(one, barrier, self._clock)
            except InspectionFailed as error:
                raise RebuildDiffers(f"{error}; to swap without comparing: --no-verify") from error
        if check and compared is not None and compared.given and not compared.same:
            raise RebuildDiffers(differing(compared, who))
        more = self._more_parked(live, candidate) if check else 0
        if more > 0:
            raise RebuildDiffers(
                f"{candidate} has put aside {more} events more than {live}: see memorybus dlq ls "
                f"--provider {candidate}; to swap all the same: --no-verify"
            )
        return compared

    def _acts(self, provider: str) -> bool:
        """Say whether tools of a provider act on the world, or nobody here knows."""
        try:
            return bool(described(self.desk.settings, provider).outside_tools)
        except MemoryBusError:
            return True

    def _more_parked(self, live: str, candidate: str) -> int:
        """Return how many events only the candidate put aside, when the live one had its time."""
        lanes, until = self.desk.lanes, self._clock.monotonic() + _SETTLE
        while True:
            more = parked(lanes.states(candidate)) - parked(lanes.states(live))
            if more <= 0 or self._clock.monotonic() > until:
                return more
            self._clock.sleep(LOOK)

    def _end(
        self,
        barrier: Barrier,
        taking: TakingOver,
        live: str,
        previous: str,
        compared: Compared | None,
    ) -> Rebuilt:
        """Purge what the old one said, and let it stand still."""
        provider = taking.provider
        purged = self._purge(provider)
        self._crash("rebuild.purged")
        taking.end(live, previous)
        purged += self._purge(provider)
        self._crash("rebuild.ended")
        aside = parked(self.desk.lanes.states(live))
        held = barrier.held_ms + taking.held_ms
        return Rebuilt(provider, live, previous, compared, aside, purged, held)
