"""``memorybus rebuild``: fills a generation next to the live one, compares and swaps them (G8).

The live instance serves while the candidate is filled. Then the lanes of both pause for a moment.
The candidate is brought to exactly the position of the live instance, the keys that still differ
are compared, and the candidate becomes live. Publishing and recall continue all the time.

Each step may be repeated: after a kill, the same command continues. If a killed command left the
live instance paused, the workers resume it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector
from memorybus.processes.commands import describe_instance
from memorybus.recall.retractions import purge
from memorybus.registry.homes import delete_state, home_elsewhere, local_home
from memorybus.registry.instances import (
    Instance,
    InstancePause,
    InstancesView,
    Live,
    command_pause,
    live_name,
    prepared_copy,
)
from memorybus.registry.rebuild_lock import RebuildLock
from memorybus.testing import CrashPoint, crash_points, no_crash
from memorybus.text.display import count_text

from memorybus_console.operations.copies.copies import await_removal, mark_dropped
from memorybus_console.operations.copies.generations import (
    Generation,
    command_to_finish_swap,
    copies_never_live,
    describe_place,
    generations,
    live_after_drop,
    live_after_swap,
    unfinished_swap,
)
from memorybus_console.operations.moments import count_behind
from memorybus_console.operations.rebuild import plan
from memorybus_console.operations.rebuild.comparison import (
    NOT_COMPARED,
    Comparison,
    ComparisonResult,
    DifferingKeys,
    describe_refusal,
    summarize,
)
from memorybus_console.operations.rebuild.pause import LOOK_EVERY, LanePause, count_parked
from memorybus_console.operations.rebuild.plan import RebuildPlan, RebuildRequest
from memorybus_console.operations.stores import Stores, check_provider, locked_stores
from memorybus_console.result import Remark, Result

NEARLY_FILLED = 500
"""The most events that a copy may lack to count as filled: they take only a moment."""

_PARKING_TIME = 5.0
"""Seconds to wait until the live instance also parks what the candidate has parked."""

ReportStep = Callable[[str, int, int], Any]
"""Receives the current step, how many events are done, and how many there are."""


class RebuildDiffers(MemoryBusError):
    """The rebuilt state differs from the live one; nothing was swapped."""


class RebuildResult(Result, frozen=True):
    """What a rebuild or rollback did.

    Attributes:
        previous: the instance before it, kept for a rollback with its lanes paused.
        compared: the comparison of the two states; None if they were not compared.
        paused_ms: for how long the provider's lanes paused; 0 if no worker served them anyway.
    """

    provider: str
    live: str
    previous: str
    compared: ComparisonResult | None
    parked: int
    purged: int
    paused_ms: int

    def headline(self) -> str:
        return f"{self.live} is live for {self.provider}; {self._comparison()}"

    def _comparison(self) -> str:
        compared = self.compared
        if compared is None or not compared.given:
            return "up to date"
        equal = compared.keys - compared.differing
        return f"digests compared: {equal} of {compared.keys} keys equal"

    def notes(self) -> Iterator[Remark]:
        seconds = self.paused_ms / 1000
        pause = f"its lanes paused for {seconds:.1f} s" if seconds else "its lanes did not pause"
        yield Remark(f"{pause}; {count_text(self.purged, 'cached recall')} dropped")
        if self.parked:
            yield Remark(f"{count_text(self.parked, 'event')} parked: memorybus dlq ls", "yellow")
        if self.previous:
            yield Remark(
                f"{self.previous} is kept, without new events: memorybus rebuild --rollback "
                f"{self.provider} goes back to it, --drop {self.provider} removes it"
            )


@contextmanager
def open_rebuilder(
    settings: Settings, provider: str, what: str, by: str, tell: ReportStep
) -> "Iterator[Rebuilder]":
    """Yield a rebuilder that has the provider's lock as long as the block lasts.

    Raises:
        RebuildRuns: another command has it.
    """
    with locked_stores(settings, provider, what, by) as (stores, lock):
        crash, purge_provider = (
            crash_points(settings.crash_at),
            partial(purge, stores.redis, settings),
        )
        yield Rebuilder(stores, purge_provider, lock, what, tell, SYSTEM, crash)


@dataclass
class Rebuilder:
    """Carries a swap out, or continues one. Belongs to one thread.

    Passes the crash points ``rebuild.made``, ``.filled``, ``.met``, ``.verified``, ``.swapped``,
    ``.purged`` and ``.ended``.

    Attributes:
        inspector: asks instances about their state.

    Args:
        purge: deletes a provider's warm results, and returns how many there were.
        what: the command: ``rebuild`` or ``rollback``.
        crash: crash points of fault tests.
    """

    stores: Stores
    purge: Callable[[str], int]
    lock: RebuildLock
    what: str
    tell: ReportStep
    clock: Clock
    crash: CrashPoint = no_crash

    def __post_init__(self) -> None:
        self.inspector = InstanceInspector(self.stores.settings, self.clock)

    # -- parts that other commands use, too -------------------------------------------------------

    def add_copy(self, copy: Instance) -> None:
        """Record a copy; the state of a local one lies where its provider's state does."""
        home = self.stores.homes.all().get(copy.provider)
        if home is not None:
            self.stores.homes.move(copy.name, home)  # before any worker serves it elsewhere
        elif describe_instance(self.stores.settings, copy.provider).placement == "local":
            self.stores.homes.move(copy.name, local_home(self.stores.settings))
        self.stores.add_instance(copy)

    def pause(self, provider: str, candidate: str, by: str) -> LanePause:
        why = command_pause(self.what, provider, candidate, by, self.clock.now_ms())
        return LanePause(self.stores, self.lock, why, self.clock)

    def fill(self, pause: LanePause, candidate: str, provider: str) -> None:
        """Let workers fill a copy, and wait until it has nearly all of the history.

        Raises:
            LanesStalled: the copy does not advance.
        """
        pause.end(candidate)
        by_person = pause.paused_by_person(candidate)
        if by_person is not None and by_person.state == "kept":
            self.stores.instances.resume(candidate)
        pause.open_end(candidate, provider)
        total = sum(pause.heads().values())
        pause.wait_for_none(
            lambda: count_behind(pause.numbers(candidate), pause.heads()),
            f"{candidate} is not filled; does a worker serve {provider}?",
            enough=NEARLY_FILLED,
            mover=candidate,
            tell=lambda left: self.tell("fills", max(0, total - left), total),
        )

    def comparison(self, provider: str, first: str, second: str) -> Comparison:
        self.tell("compares", 0, 0)
        return Comparison(self.inspector, provider, first, second, self.lock.keep)

    def compare_while_running(
        self, comparison: Comparison, pause: LanePause
    ) -> tuple[int, DifferingKeys]:
        """Compare all keys while both instances run; return how many there are, and which differ.

        Raises:
            LanesStalled: the second does not reach the position of the first.
            InspectionFailed: an instance cannot be asked.
        """
        pause.wait_until_level(comparison.second, comparison.first)
        return comparison.compare_all()

    # -- the rebuild ------------------------------------------------------------------------------

    def make_generation(self, plan: RebuildPlan, *, check: bool) -> None:
        """Record the new generation if a swap is possible; its provider's workers then fill it."""
        if not plan.known:
            copy = plan.instance
            pause = self.pause(copy.provider, copy.name, copy.made_by)
            if check:
                pause.check_complete(live_name(copy.provider, self.stores.instances.live()))
            self.add_copy(copy)
            self.crash("rebuild.made")

    def swap(
        self, candidate: str, provider: str, by: str, reason: str, *, check: bool, alike: bool
    ) -> RebuildResult:
        """Fill a candidate, compare it, and make it live.

        Args:
            check: whether to refuse a state that differs or has parked more, and to wait for a live
                instance that lags.
            alike: whether the state must equal the live one's.

        Raises:
            LanesStalled: lanes do not reach the position they should.
            RebuildDiffers: the states differ.
            MemoryBusError: something else failed; in every case the live instance continues as
                before.
        """
        live = live_name(provider, self.stores.instances.live())
        pause = self.pause(provider, candidate, by)
        try:
            if check:
                pause.check_complete(live)
            pause.end(live)  # a killed command may have paused it
            self.fill(pause, candidate, provider)
            self.crash("rebuild.filled")
            compared = self._compare_and_pause(
                pause, provider, live, candidate, check=check, alike=alike
            )
            self.crash("rebuild.verified")
            # After a kill, workers resume the live instance by themselves: so the candidate's plan
            # must have no end before it becomes live.
            pause.open_end(candidate, provider)
            back, at = self.what == "rollback", self.clock.now_ms()
            self._change_live(
                provider,
                live,
                lambda entry: live_after_swap(entry, candidate, at, by, reason, back=back),
            )
        except BaseException:
            self._resume(pause, provider, live, candidate)
            raise
        self.crash("rebuild.swapped")
        return self._finish_swap(pause, provider, candidate, live, compared)

    def finish_killed_swap(self, provider: str, by: str) -> RebuildResult:
        """Do what is left of a swap whose command was killed after the swap itself."""
        live = self.stores.instances.live()[provider]
        pause = self.pause(provider, live.instance, by)
        return self._finish_swap(pause, provider, live.instance, live.leaving, None)

    # -- before the swap --------------------------------------------------------------------------

    def _compare_and_pause(
        self,
        pause: LanePause,
        provider: str,
        live: str,
        candidate: str,
        *,
        check: bool,
        alike: bool,
    ) -> ComparisonResult | None:
        """Pause both instances at the same position, and compare them as far as possible."""
        comparison = self.comparison(provider, live, candidate) if alike else None
        try:
            given = comparison is not None and comparison.has_digest
            keys, left = (
                self.compare_while_running(comparison, pause) if comparison and given else (0, {})
            )
            if check:
                self._check_parked(live, candidate)
            self.tell("takes over", 0, 0)
            self._pause_both(pause, provider, live, candidate, check=check)
            self.crash("rebuild.met")
            if comparison is None:
                return None
            compared = summarize(keys, comparison.compare_again(left)) if given else NOT_COMPARED
        except InspectionFailed as error:
            raise RebuildDiffers(f"{error}; to swap without comparing: --no-verify") from error
        if check and compared.differing:
            raise RebuildDiffers(describe_refusal(compared, provider, live, candidate))
        return compared

    def _pause_both(
        self, pause: LanePause, provider: str, live: str, candidate: str, *, check: bool
    ) -> None:
        if check or not pause.is_unserved(live):
            pause.meet(candidate, live, provider)
            return
        # No worker can serve the live instance: the candidate goes to the end of history alone.
        end = pause.heads()
        pause.wait_for_none(
            lambda: count_behind(pause.numbers(candidate), end),
            f"{candidate} does not come to the end of the history",
            mover=candidate,
        )
        pause.begin(live)
        pause.begin(candidate)

    def _check_parked(self, live: str, candidate: str) -> None:
        """Refuse a candidate that has parked more events than the live instance."""
        lanes, until = self.stores.lanes, self.clock.monotonic() + _PARKING_TIME
        while (
            more := count_parked(lanes.states(candidate)) - count_parked(lanes.states(live))
        ) > 0:
            if self.clock.monotonic() > until:
                raise RebuildDiffers(
                    f"{candidate} has parked {more} events more than {live}: see memorybus dlq "
                    f"ls --provider {candidate}; to swap all the same: --no-verify"
                )
            self.clock.sleep(LOOK_EVERY)

    def _change_live(self, provider: str, live: str, change: Callable[[Live], Live]) -> None:
        """Change the entry of the live instance atomically."""
        before = self.stores.instances.live().get(provider)
        entry = before or Live(provider)
        same = entry.instance == live
        if not same or not self.stores.instances.swap(provider, before, change(entry)):
            raise MemoryBusError(
                f"another command made an instance of {provider} live in the meantime: see "
                f"memorybus rebuild ls, then run the same command again"
            )

    def _resume(self, pause: LanePause, provider: str, live: str, candidate: str) -> None:
        """Resume both instances; if Redis is away, workers or the same command do so later."""
        with suppress(MemoryBusError):
            entry = self.stores.instances.live().get(provider)
            if live_name(provider, {provider: entry} if entry else {}) != live:
                return  # the candidate is live already: the same command finishes the swap
            pause.end(live)
            pause.open_end(candidate, provider)
            pause.end(candidate)
            if entry is not None and entry.previous == candidate:
                self._keep_for_rollback(provider, live, candidate)

    # -- after the swap ---------------------------------------------------------------------------

    def _finish_swap(
        self,
        pause: LanePause,
        provider: str,
        live: str,
        previous: str,
        compared: ComparisonResult | None,
    ) -> RebuildResult:
        """Resume the new instance, purge the old one's results, and keep the old one paused."""
        self._carry_over_pause(pause, live, previous)
        ours = prepared_copy(self.stores.instances.pauses().get(live)) == live
        if ours:
            pause.end(live)
        purged = self.purge(provider)
        self.crash("rebuild.purged")
        if ours:
            pause.wait_until_owned(live)
        paused_ms = pause.milliseconds
        self._keep_all_for_rollback(provider, live)
        pause.wait_for_none(
            lambda: sum(lane.owned for lane in self.stores.lanes.states(previous)),
            f"{live} serves now, but the lanes of {previous} are not given up",
        )
        self._change_live(provider, live, lambda entry: msgspec.structs.replace(entry, leaving=""))
        purged += self.purge(provider)  # answers that the old instance gave late
        self.crash("rebuild.ended")
        aside = count_parked(self.stores.lanes.states(live))
        return RebuildResult(provider, live, previous, compared, aside, purged, paused_ms)

    def _carry_over_pause(self, pause: LanePause, live: str, previous: str) -> None:
        by_person = pause.paused_by_person(previous)
        if by_person is not None and not by_person.state:
            self.stores.instances.pause(live, by_person)

    def _keep_for_rollback(self, provider: str, live: str, previous: str) -> None:
        reason = f"kept for memorybus rebuild --rollback {provider}: {live} serves"
        kept = InstancePause(reason, "", self.clock.now_ms(), state="kept")
        self.stores.instances.set_pause(previous, kept)

    def _keep_all_for_rollback(self, provider: str, live: str) -> None:
        """Keep all earlier generations paused: a killed rollback may have resumed one."""
        for generation in generations(provider, self.stores.instances.read_view()):
            if generation.state in ("kept", "unused"):
                self._keep_for_rollback(provider, live, generation.name)


class Drop(Result, frozen=True):
    """What would be dropped, or was.

    Attributes:
        dropped: the names of the generations to drop; afterwards, the names of the removed ones.
        remaining: the generations that are marked but not removed yet.
        kept: the previous generation, if it stays for a rollback; else "".
        shared: the places of the states that lie in a backend and stay there, by name.
    """

    provider: str
    live: str
    dropped: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    kept: str = ""
    shared: Mapping[str, str] = {}
    executed: bool = False

    def headline(self) -> str:
        verb = "dropped" if self.executed else "would drop"
        stays = f"{self.live} and {self.kept} stay" if self.kept else f"{self.live} stays"
        names = ", ".join(self.dropped) or "nothing yet"
        return f"{verb}: {names}{self._state()}; {stays}"

    def _state(self) -> str:
        places = {name: self.shared[name] for name in self.dropped if name in self.shared}
        shared = [f"{name} ({place})" if place else name for name, place in places.items()]
        if not shared:
            return " with all state"
        return (
            f", but not the state in the backend of {', '.join(shared)}: delete it there before "
            f"that place is used again"
        )

    def notes(self) -> Iterator[Remark]:
        yield from (Remark(reason, "yellow") for reason in self.waits)

    def is_plan(self) -> bool:
        return not self.executed


def rebuild(work: Rebuilder, request: RebuildRequest, by: str) -> RebuildResult:
    """Make a generation, fill and compare it, and make it live.

    Raises:
        ConfigError: see `plan.plan_rebuild`; or no worker would fill it.
    """
    rebuild_plan = plan.plan_rebuild(work.stores, request, SYSTEM, by)
    if not rebuild_plan.served:
        raise ConfigError(plan.describe_unserved(request.provider))
    ended = _finish_killed_swap(work, request.provider, by)
    if ended is not None and rebuild_plan.swapped:
        return ended
    work.make_generation(rebuild_plan, check=request.verify)
    return work.swap(
        rebuild_plan.instance.name,
        request.provider,
        by,
        request.reason,
        check=request.verify,
        alike=rebuild_plan.compared,
    )


def roll_back(work: Rebuilder, provider: str, by: str, reason: str) -> RebuildResult:
    """Bring the previous generation up to date, and make it live again.

    Raises:
        ConfigError: there is no previous generation.
    """
    to = plan.rollback_target(work.stores, provider)
    ended = _finish_killed_swap(work, provider, by)
    if ended is not None and ended.live == to:
        return ended
    return work.swap(to, provider, by, reason, check=False, alike=False)


def _finish_killed_swap(work: Rebuilder, provider: str, by: str) -> RebuildResult | None:
    """Finish the swap of a command that was killed after it; return None if there is none."""
    if not unfinished_swap(provider, work.stores.instances.read_view()):
        return None
    return work.finish_killed_swap(provider, by)


def plan_drop(stores: Stores, provider: str) -> Drop:
    """Return what would be dropped; change nothing.

    These are the generations that never served; if there are none, all but the live one.

    Raises:
        ConfigError: the provider is unknown, there is nothing to drop, or a swap is unfinished.
    """
    view = stores.instances.read_view()
    if unfinished_swap(provider, view):
        raise ConfigError(
            f"a swap of {provider} was cut short; first: {command_to_finish_swap(provider, view)}"
        )
    every = generations(provider, view)
    live = live_name(provider, view.live)
    # Generations that are marked already count, so that a repeated command drops no others.
    names = tuple(
        instance.name for instance in copies_never_live(provider, "rebuild", view)
    ) or tuple(
        generation.name
        for generation in every
        if generation.name != live and _has_anything(stores, generation)
    )
    if not names:
        check_provider(stores, provider)
        raise ConfigError(f"nothing to drop: {live} is the only generation of {provider}")
    entry = view.live.get(provider, Live(provider))
    kept, shared = (
        live_after_drop(entry, names).previous,
        _shared_places(stores, provider, names, view),
    )
    return Drop(provider, live, names, kept=kept, shared=shared)


def _shared_places(
    stores: Stores, provider: str, names: Sequence[str], view: InstancesView
) -> dict[str, str]:
    """Return where shared states are, by instance; empty if the provider is not available here."""
    with suppress(MemoryBusError):
        what = describe_instance(stores.settings, provider)
        if not what.by_home:
            first = Instance(name=provider, provider=provider)
            return {
                name: describe_place(what, view.all.get(name, first), stores.settings.provider)
                for name in names
            }
    return {}


def _has_anything(stores: Stores, generation: Generation) -> bool:
    return (
        generation.name != generation.provider or stores.lanes.count_remaining(generation.name) > 0
    )


def drop_generations(work: Rebuilder, what: Drop, by: str, clock: Clock) -> Drop:
    """Drop generations; afterwards a rollback to them is impossible.

    Args:
        what: see `plan_drop`.

    Raises:
        LogUnavailable: Redis is away; the command has to be repeated.
        ConfigError: the first generation's state lies elsewhere.
        LanesStalled: a worker keeps lanes of the first generation; nothing is dropped.
        OSError: its state cannot be deleted; the command has to be repeated.
        MemoryBusError: another command swapped meanwhile; nothing is dropped.
    """
    stores, first = work.stores, what.provider
    _exclude_from_swaps(work, what, by)
    copies = [name for name in what.dropped if name != first]
    for name in copies:
        mark_dropped(stores, name)
    if first in what.dropped:
        _drop_first(stores, what, clock)
    remaining = await_removal(stores, copies, clock)
    gone = tuple(name for name in what.dropped if name not in remaining)
    return msgspec.structs.replace(
        what,
        dropped=gone,
        remaining=tuple(remaining),
        waits=tuple(remaining.values()),
        executed=True,
    )


def _exclude_from_swaps(work: Rebuilder, what: Drop, by: str) -> None:
    """Make sure that no command can make a generation live that is to be dropped."""
    first = what.provider
    pause = work.pause(first, first, by)
    try:
        if first in what.dropped:
            _check_state_is_here(work.stores, first)
            if pause.paused_by_person(first) is None:
                # Its lasting pause was ended, so a worker may still take its lanes.
                pause.begin_before_deletion(first)
            else:
                pause.begin(first)
        _forget_generations(work.stores, what)
    except BaseException:
        with suppress(MemoryBusError):
            pause.end(first)
        raise


def _forget_generations(stores: Stores, what: Drop) -> None:
    live = stores.instances.live().get(what.provider)
    entry = live or Live(what.provider)
    same = entry.instance == what.live
    then = live_after_drop(entry, what.dropped)
    if not same or not stores.instances.swap(what.provider, live, then):
        raise MemoryBusError(f"somebody else swapped {what.provider} meanwhile; begin again")


def _check_state_is_here(stores: Stores, first: str) -> None:
    home = home_elsewhere(stores.homes.all().get(first), stores.settings)
    if home is not None:
        raise ConfigError(
            f"the state of {first} is in {home.path} on {home.host}: run this command there"
        )


def _drop_first(stores: Stores, what: Drop, clock: Clock) -> None:
    """Delete the state of the instance of the settings, which stays paused from now on.

    Its lanes are removed last: while they exist, the same command finishes the rest. The instance
    stays in the settings, because the live generation takes its kind and options from there.
    """
    reason = f"dropped: {what.live} serves {what.provider}"
    stores.instances.set_pause(
        what.provider, InstancePause(reason, "", clock.now_ms(), state="dropped")
    )
    delete_state(stores.settings, what.provider)
    stores.lanes.remove(what.provider)
