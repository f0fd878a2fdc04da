"""``memorybus rebuild``: a generation is filled beside the live one, compared, and swapped (G8).

The live instance serves while the candidate is filled. Then the lanes of both pause for a moment:
the candidate comes to exactly the live one's place, what still differs is compared, the candidate
serves from then on. Publishing and recall go on meanwhile.

Each step may be repeated: after a kill the same command goes on. A hold that a killed command left
on the instance that serves is taken away by the workers.
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
from memorybus.operations.copies.generations import behind, generations, swapped
from memorybus.operations.rebuild.comparison import (
    NOT_COMPARED,
    Compared,
    Comparison,
    DifferingKeys,
    refusal,
    summary,
)
from memorybus.operations.rebuild.pause import LOOK, LanePause, parked
from memorybus.operations.rebuild.plan import Prepared
from memorybus.operations.stores import Stores
from memorybus.processes.commands import describe_instance
from memorybus.recall.purge import purge
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.homes import local_home
from memorybus.registry.instances import Instance, Live, live_name
from memorybus.registry.pauses import InstancePause, command_pause, prepared_copy
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus.testing import CrashPoint, crash_points, no_crash

CLOSE = 500
"""Places of the history that a filled copy may still lack: they take a moment."""

_PARKING_TIME = 5.0
"""Seconds in which the live instance parks what the candidate has parked, if it does so at all."""

Tell = Callable[[str, int, int], Any]
"""Receives the step that begins or goes on, and how many places of how many are done."""


class RebuildDiffers(MemoryBusError):
    """The rebuilt state is not the live one; nothing was swapped."""


class Rebuilt(msgspec.Struct, frozen=True):
    """What was done.

    Attributes:
        provider: whose state.
        live: the instance that serves now.
        previous: the one before; it is kept for a rollback, and its lanes stand still.
        compared: how the two states compared; None if they were not.
        parked: events that the new one put aside.
        purged: warm results that went.
        held_ms: for how long the provider's lanes paused; 0 if nobody served them anyway.
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
    """Give a rebuilder that has the provider's lock for as long as the block lasts.

    Raises:
        RebuildRuns: another command has it.
        LogUnavailable: Redis is away.
    """
    redis = connect_redis(settings)
    try:
        with (
            RebuildLock(redis, Keys(settings.namespace), provider, what, by) as lock,
            Stores(settings, lock) as stores,
        ):
            stores.check()
            crash = crash_points(settings.crash_at)
            yield Rebuilder(
                stores, partial(purge, redis, settings), lock, what, tell, SYSTEM, crash
            )
    finally:
        redis.close()


class Rebuilder:
    """Carries a swap out, or goes on with one. Belongs to one thread.

    Passes the crash points ``rebuild.made``, ``.filled``, ``.met``, ``.verified``, ``.swapped``,
    ``.purged`` and ``.ended``.

    Attributes:
        stores: the stores.
        inspector: looks into instances.

    Args:
        stores: the stores.
        purge: deletes a provider's warm results, and returns how many there were.
        lock: taken for the provider.
        what: the command, in a word: ``rebuild`` or ``rollback``.
        tell: receives how far it is.
        clock: time.
        crash: crash points of fault tests.
    """

    def __init__(
        self,
        stores: Stores,
        purge: Callable[[str], int],
        lock: RebuildLock,
        what: str,
        tell: Tell,
        clock: Clock,
        crash: CrashPoint = no_crash,
    ) -> None:
        """Do nothing yet."""
        self.stores = stores
        self._purge = purge
        self._lock = lock
        self._what = what
        self._tell = tell
        self._clock = clock
        self._crash = crash
        self.inspector = InstanceInspector(stores.settings, clock)

    # -- parts that other commands use, too -------------------------------------------------------

    def add(self, copy: Instance) -> None:
        """Make a copy known; the state of a local one lies where its provider's does."""
        home = self.stores.homes.all().get(copy.provider)
        if home is not None:
            self.stores.homes.move(copy.name, home)  # before any worker serves it elsewhere
        elif describe_instance(self.stores.settings, copy.provider).placement == "local":
            self.stores.homes.move(copy.name, local_home(self.stores.settings))
        self.stores.make(copy)

    def pause(self, provider: str, candidate: str, by: str) -> LanePause:
        """Return what pauses lanes for a candidate."""
        why = command_pause(self._what, provider, candidate, by, self._clock.now_ms())
        return LanePause(self.stores, self._lock, why, self._clock)

    def fill(self, pause: LanePause, candidate: str, provider: str) -> None:
        """Wait until a copy has nearly all that the history holds.

        Raises:
            LanesStalled: nothing moves.
        """
        pause.release(candidate)
        hold = pause.paused_by_person(candidate)
        if hold is not None and hold.state == "kept":
            self.stores.instances.resume(candidate)
        pause.open_end(candidate, provider)
        total = sum(pause.heads().values())
        pause.wait_for_none(
            lambda: behind(pause.numbers(candidate), pause.heads()),
            f"{candidate} is not filled; does a worker serve {provider}?",
            enough=CLOSE,
            mover=candidate,
            tell=lambda left: self._tell("fills", max(0, total - left), total),
        )

    def comparison(self, provider: str, first: str, second: str) -> Comparison:
        """Return a comparison of two instances."""
        self._tell("compares", 0, 0)
        return Comparison(self.inspector, provider, first, second, self._lock.keep)

    def compared_beside(self, one: Comparison, pause: LanePause) -> tuple[int, DifferingKeys]:
        """Compare all keys while both instances go on; return how many there are, and which differ.

        Raises:
            LanesStalled: the second does not come as far as the first.
            InspectionFailed: one cannot be asked.
        """
        pause.wait_until_level(one.second, one.first)
        return one.whole()

    # -- the whole --------------------------------------------------------------------------------

    def make(self, found: Prepared, *, check: bool) -> None:
        """Make the new generation known if a swap is possible; workers of its provider fill it."""
        if not found.known:
            copy = found.instance
            pause = self.pause(copy.provider, copy.name, copy.made_by)
            self._check_ready(pause, copy.provider, check=check)
            self.add(copy)
            self._crash("rebuild.made")

    def swap(
        self, candidate: str, provider: str, by: str, reason: str, *, check: bool, alike: bool
    ) -> Rebuilt:
        """Fill a candidate, compare it, and let it serve.

        Args:
            candidate: the instance.
            provider: of which.
            by: who wants it.
            reason: why.
            check: refuse a state that is not as it should be, and wait for a live one that lags.
            alike: the state must equal the live one's.

        Raises:
            LanesStalled: lanes do not come to where they should.
            RebuildDiffers: the states are not the same.
            MemoryBusError: something else; in every case the live one goes on as before.
        """
        live = live_name(provider, self.stores.instances.live())
        pause = self.pause(provider, candidate, by)
        try:
            self._check_ready(pause, provider, check=check)
            pause.release(live)  # a command that was killed may have held it
            self.fill(pause, candidate, provider)
            self._crash("rebuild.filled")
            compared = self._meet(pause, provider, live, candidate, check=check, alike=alike)
            self._crash("rebuild.verified")
            # Who serves goes on by itself after a kill, so its plan has no end before it serves.
            pause.open_end(candidate, provider)
            self._check_workers(provider)
            back, at = self._what == "rollback", self._clock.now_ms()
            self._mark(
                provider, live, lambda known: swapped(known, candidate, at, by, reason, back=back)
            )
        except BaseException:
            self._resume(pause, provider, live, candidate)
            raise
        self._crash("rebuild.swapped")
        return self._end(pause, provider, candidate, live, compared)

    def finish(self, provider: str, by: str) -> Rebuilt:
        """Do what is left of a swap whose command was killed after it."""
        known = self.stores.instances.live()[provider]
        pause = self.pause(provider, known.instance, by)
        return self._end(pause, provider, known.instance, known.leaving, None)

    # -- before the swap --------------------------------------------------------------------------

    def _check_ready(self, pause: LanePause, provider: str, *, check: bool) -> None:
        """Make sure, as far as can be seen, that a swap is possible.

        Raises:
            LanesStalled: the live instance must have all there is, lacks something, and is paused.
            MemoryBusError: see `_check_workers`.
        """
        self._check_workers(provider)
        if check:
            pause.check_complete(live_name(provider, self.stores.instances.live()))

    def _check_workers(self, provider: str) -> None:
        """Make sure that every worker of the provider knows what a swap is.

        Raises:
            MemoryBusError: one does not, and would go on with the generation before.
        """
        workers = self.stores.roster.alive()
        old = [one.id for one in workers if provider in one.providers and not one.swaps]
        if old:
            raise MemoryBusError(
                f"{', '.join(old)}: of an earlier release, which serves {provider} and would "
                f"go on with the generation before; end it, or start it anew with this release, "
                f"then give the same command again"
            )

    def _meet(
        self,
        pause: LanePause,
        provider: str,
        live: str,
        candidate: str,
        *,
        check: bool,
        alike: bool,
    ) -> Compared | None:
        """Pause both instances at the same place, and compare them as far as that is possible."""
        one = self.comparison(provider, live, candidate) if alike else None
        try:
            given = one is not None and one.given
            keys, left = self.compared_beside(one, pause) if one and given else (0, {})
            if check:
                self._check_parked(live, candidate)
            self._tell("takes over", 0, 0)
            self._pause_both(pause, provider, live, candidate, check=check)
            self._crash("rebuild.met")
            if one is None:
                return None
            compared = summary(keys, one.again(left)) if given else NOT_COMPARED
        except InspectionFailed as error:
            raise RebuildDiffers(f"{error}; to swap without comparing: --no-verify") from error
        if check and compared.differing:
            raise RebuildDiffers(refusal(compared, provider, live, candidate))
        return compared

    def _pause_both(
        self, pause: LanePause, provider: str, live: str, candidate: str, *, check: bool
    ) -> None:
        if check or not pause.is_unserved(live):
            pause.meet(candidate, live, provider)
            return
        # Nobody can serve the live instance any more: the candidate comes to the end alone.
        end = pause.heads()
        pause.wait_for_none(
            lambda: behind(pause.numbers(candidate), end),
            f"{candidate} does not come to the end of the history",
            mover=candidate,
        )
        pause.hold(live)
        pause.hold(candidate)

    def _check_parked(self, live: str, candidate: str) -> None:
        """Refuse a candidate that has parked events which the live one applies.

        Raises:
            RebuildDiffers: it has.
        """
        lanes, until = self.stores.lanes, self._clock.monotonic() + _PARKING_TIME
        while (more := parked(lanes.states(candidate)) - parked(lanes.states(live))) > 0:
            if self._clock.monotonic() > until:
                raise RebuildDiffers(
                    f"{candidate} has put aside {more} events more than {live}: see memorybus dlq "
                    f"ls --provider {candidate}; to swap all the same: --no-verify"
                )
            self._clock.sleep(LOOK)

    def _mark(self, provider: str, live: str, change: Callable[[Live], Live]) -> None:
        """Change who serves, in one step.

        Raises:
            MemoryBusError: another command swapped meanwhile.
        """
        found = self.stores.instances.live().get(provider)
        known = found or Live(provider)
        same = known.instance == live
        if not same or not self.stores.instances.swap(provider, found, change(known)):
            raise MemoryBusError(f"somebody else swapped {provider} meanwhile; begin again")

    def _resume(self, pause: LanePause, provider: str, live: str, candidate: str) -> None:
        """Let both go on as before; without Redis, workers and the same command do so."""
        with suppress(MemoryBusError):
            known = self.stores.instances.live().get(provider)
            if live_name(provider, {provider: known} if known else {}) != live:
                return  # the candidate serves already: the same command ends the swap
            pause.release(live)
            pause.open_end(candidate, provider)
            pause.release(candidate)
            if known is not None and known.previous == candidate:
                self._keep(provider, live, candidate)

    # -- after the swap ---------------------------------------------------------------------------

    def _end(
        self,
        pause: LanePause,
        provider: str,
        live: str,
        previous: str,
        compared: Compared | None,
    ) -> Rebuilt:
        """Let the new one go on, purge what the old one said, and keep that standing still."""
        self._hand_on(pause, live, previous)
        held = prepared_copy(self.stores.instances.pauses().get(live)) == live
        if held:
            pause.release(live)
        purged = self._purge(provider)
        self._crash("rebuild.purged")
        if held:
            pause.wait_until_owned(live)
        held_ms = pause.milliseconds
        self._keep_all(provider, live)
        pause.wait_for_none(
            lambda: sum(lane.owned for lane in self.stores.lanes.states(previous)),
            f"{live} serves now, but the lanes of {previous} are not given up",
        )
        self._mark(provider, live, lambda known: msgspec.structs.replace(known, leaving=""))
        purged += self._purge(provider)  # answers that the old one gave late
        self._crash("rebuild.ended")
        aside = parked(self.stores.lanes.states(live))
        return Rebuilt(provider, live, previous, compared, aside, purged, held_ms)

    def _hand_on(self, pause: LanePause, live: str, previous: str) -> None:
        """Keep a provider paused that a person paused, whichever instance serves it now."""
        hold = pause.paused_by_person(previous)
        if hold is not None and not hold.state:
            self.stores.instances.pause(live, hold)

    def _keep(self, provider: str, live: str, previous: str) -> None:
        """Let an instance stand still that is kept for a rollback."""
        reason = f"kept for memorybus rebuild --rollback {provider}: {live} serves"
        hold = InstancePause(reason, "", self._clock.now_ms(), state="kept")
        self.stores.instances.set_pause(previous, hold)

    def _keep_all(self, provider: str, live: str) -> None:
        """Let all stand still that served once: a rollback that was killed had one go on."""
        for one in generations(provider, self.stores.instances.look()):
            if one.state in ("kept", "unused"):
                self._keep(provider, live, one.name)
