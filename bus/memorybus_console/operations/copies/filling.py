"""Fills a copy with a worker of the command, next to the running ones, and reads its progress."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, MemoryBusError
from memorybus.ids import new_mark
from memorybus.processes import signals
from memorybus.processes.child import start_child
from memorybus.processes.commands import copy_command
from memorybus.processes.keeper import keeping
from memorybus.registry.instances import Instance, lasting_pause
from memorybus.registry.reclaim import reclaim_lanes
from memorybus.registry.roster import worker_id
from memorybus.text.display import format_duration

from memorybus_console.operations.stores import Stores

LOOK_EVERY = 0.2
"""Seconds between two reads of a copy's progress."""

_REDIS_WAIT_SECONDS = 30.0
"""Seconds that a command waits while Redis is away."""


class CopyGone(MemoryBusError):
    """A copy was dropped while it was filled."""


class CopyPaused(MemoryBusError):
    """Somebody paused a copy while it was filled."""


class NobodyServes(MemoryBusError):
    """A copy's state lies on another host, and no worker is alive there."""


def time_text(seconds: float) -> str:
    """Return a time span as people read it."""
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.1f} seconds" if seconds < 10 else format_duration(seconds)


class CopyProgress(msgspec.Struct, frozen=True):
    """How far a copy is filled.

    Attributes:
        done: positions of the history that it has passed, including those it leaves out.
        rate: positions a second, since the command began to watch.
        eta: seconds that remain at this rate; None if nothing moves.
    """

    done: int
    total: int
    parked: int
    rate: float
    eta: float | None

    @property
    def finished(self) -> bool:
        """Whether the copy has passed its whole plan."""
        return self.done >= self.total

    def pace(self) -> str:
        """Return how fast it is filled, and how long that takes, in words."""
        return f"{self.rate:,.0f}/s" + ("" if self.eta is None else f", {time_text(self.eta)} left")


class LocalWorker:
    """A child process that serves one copy; if it dies, another one takes its place."""

    def __init__(self, settings: Settings, name: str, clock: Clock = SYSTEM) -> None:
        self._settings = settings
        self._mark = new_mark()
        command = copy_command(name, self._mark)
        self._keeping = keeping(lambda: start_child(command, settings), clock)

    def __enter__(self) -> Self:
        """Start the child."""
        self._keeper = self._keeping.__enter__()
        self.watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the child, which first releases its lanes."""
        self._keeping.__exit__(kind, error, trace)

    def watch(self) -> None:
        """Start another child if the last one has died, after freeing the dead one's lanes.

        Raises:
            MemoryBusError: the reason that the child reported; another child would end in the same
                way.
            OSError: no child can be started.
        """
        with signals.deferred():
            death = self._keeper.poll()
        if death is None:
            return
        if death.why is not None:
            raise death.why
        if death.child is not None:
            reclaim_lanes(self._settings, worker_id(death.child.pid, self._mark))


def follow_progress(
    stores: Stores,
    instance: Instance,
    worker: LocalWorker | None,
    clock: Clock = SYSTEM,
) -> Iterator[CopyProgress]:
    """Yield a copy's progress until it has passed its whole plan.

    Args:
        worker: the command's own worker, which is started again if it dies; None for none.

    Raises:
        CopyGone: somebody dropped it.
        CopyPaused: somebody paused it.
        LogUnavailable: Redis is away for longer than the command waits.
        MemoryBusError: the command's worker cannot serve the copy.
    """
    begun, first = clock.monotonic(), None
    seen_at = begun
    while True:
        if worker is not None:
            worker.watch()
        try:
            done, total, parked = _read_progress(stores, instance.name)
        except LogUnavailable:
            if clock.monotonic() - seen_at >= _REDIS_WAIT_SECONDS:
                raise
            clock.sleep(1.0)
            continue
        seen_at = clock.monotonic()
        first = done if first is None else first
        progress = _build_progress(done, total, parked, done - first, seen_at - begun)
        yield progress
        if progress.finished:
            return
        clock.sleep(LOOK_EVERY)


def _read_progress(stores: Stores, name: str) -> tuple[int, int, int]:
    now = stores.instances.get(name)
    if now is None or now.dropped:
        raise CopyGone(f"{name!r} was dropped while it was filled")
    done, total, parked = measure_progress(stores, now)
    pause = lasting_pause(stores.instances.pauses().get(name))
    if pause is not None and done < total:
        raise CopyPaused(
            f"{name} is paused ({pause.reason}), and has {done} of {total}; first: memorybus "
            f"provider resume {name}; then the same command continues"
        )
    return done, total, parked


def measure_progress(stores: Stores, instance: Instance) -> tuple[int, int, int]:
    """Return how many positions of its plan a copy has passed, of how many, and what it parked."""
    lanes = stores.lanes.states(instance.name)
    ends = instance.plan.ends(stores.settings.partitions).values()
    done = sum(min(lane.n, end) for lane, end in zip(lanes, ends, strict=True))
    return done, sum(ends), sum(lane.parked for lane in lanes)


def _build_progress(done: int, total: int, parked: int, moved: int, seconds: float) -> CopyProgress:
    rate = moved / seconds if seconds > 0 else 0.0
    eta = (total - done) / rate if rate > 0 else None
    return CopyProgress(done, total, parked, round(rate, 1), None if eta is None else round(eta, 1))
