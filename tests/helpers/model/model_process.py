"""A worker process of a model run: the real lanes, on a thread that stands still where it is told.

Only one thread runs at a time: whoever gives a process a job waits until it is done, or has come to
the crash point at which it was to stand still. There it stays, as after SIGSTOP, and may go on
later; or never, as after SIGKILL.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.testing import FakeClock
from memorybus.tracing.spans import Tracing
from memorybus_providers.base import ProviderConfig
from memorybus_workers.apply.applier import OpenInstance
from memorybus_workers.apply.parallel import ParallelApplier
from memorybus_workers.apply.pool import CallHook, CallResult, Pool, Task
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.hosting.lane_set import LaneSet
from memorybus_workers.lanes.caution import IsolationProbe
from memorybus_workers.lanes.context import InstanceContext, Role, WorkerContext
from memorybus_workers.lanes.lane import Lane
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.lanes.news import News
from redis.exceptions import RedisError

from helpers.model.model_backend import IN_FLIGHT, KINDS, Backend

JOB_SECONDS = 20.0
"""Seconds in which a job must be done: it only waits for Redis."""


class Killed(BaseException):
    """The process is no more: unwinds its thread when the run is over."""


class HandPool(Pool):
    """A pool without threads: its tasks are done when, and in the order in which, somebody says."""

    def __init__(self, clock: FakeClock, call: CallHook) -> None:
        super().__init__("by hand", 1, clock, call, lambda: None)
        self.tasks: list[Task] = []
        self.hurry = False

    def submit(self, task: Task) -> None:
        """Take a task in."""
        self.unfinished += 1
        self.tasks.append(task)

    def run(self, index: int) -> None:
        task = self.tasks.pop(index % len(self.tasks))
        error: BaseException | None = None
        try:
            self._call(task, ThreadActivity(self._clock))
        except Killed:
            raise
        except BaseException as raised:
            error = raised
        self._done.append(CallResult(task, error))

    def collect(self) -> Iterator[CallResult]:
        """Yield what was done since the last call."""
        while self.hurry and self.tasks:
            self.run(0)
        return super().collect()


class Process:
    """One worker process with one provider instance.

    Attributes:
        name: its id.
        wanted: the lanes it shall have.
        paused_at: the crash point at which it stands still, "" if it does not.
        alive: False once it was killed, or has left.
        renews: whether its leases are renewed.
    """

    def __init__(
        self, name: str, settings: Settings, clock: FakeClock, kind: str, instance: str
    ) -> None:
        self.name = name
        self.settings = settings
        self.wanted: frozenset[int] = frozenset()
        self.paused_at = ""
        self.alive = True
        self.renews = True
        self._clock = clock
        self._kind = kind
        self._instance = instance
        self._rng = random.Random(0)
        self._breaker = Breaker(self._rng)
        self._failing_events = FailingEvents(clock, self._rng, settings.attempts)
        self.leases = Leases(settings, clock, name)
        self._worker = WorkerContext(
            settings=settings,
            clock=clock,
            rng=self._rng,
            leases=self.leases,
            isolation=IsolationProbe(),
            news=News(),
            tracing=Tracing(settings.namespace),
        )
        self._renewed_at = clock.monotonic()
        self._lanes: LaneSet | None = None
        self._stop = threading.Event()
        self._armed: tuple[str, int] = ("", 0)
        self._over = False
        self._leaving = False
        self._job: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=f"model-{name}", daemon=True)
        self._thread.start()

    def opened(self, backend: Backend) -> "Process":
        """Say which backend it serves."""
        self._backend = backend
        return self

    # -- from outside -----------------------------------------------------------------------------

    def turn(self, pause: tuple[str, int] = ("", 0)) -> None:
        """Balance and step once; stand still at the n-th pass of a crash point, if one is given."""
        self._do(self._turn, pause)

    def call(self, index: int, pause: tuple[str, int] = ("", 0)) -> None:
        """Do one of the calls that are in flight."""
        self._do(lambda: self._call(index), pause)

    def leave(self, pause: tuple[str, int] = ("", 0)) -> None:
        """End in good order."""
        self._leaving = True
        self._do(self._close, pause)
        self.alive = bool(self.paused_at)

    def resume(self) -> None:
        """Go on from where it stands still."""
        self.paused_at = ""
        self._wait()
        self.alive = not self._leaving or bool(self.paused_at)

    def kill(self) -> None:
        """Never go on."""
        self.alive = False

    def end(self) -> None:
        """The run is over: unwind the thread and close the connections."""
        self._over = True
        self._go.release()
        self._thread.join(JOB_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self._lanes is not None:
            self._lanes._shared.history.close()
            self._lanes._redis.close()
        self.leases._redis.close()

    def renew(self) -> None:
        """Renew the leases if it is time to."""
        now = self._clock.monotonic()
        if self.renews and now >= self._renewed_at + self.settings.lease / 4:
            self._renewed_at = now
            with contextlib.suppress(RedisError, OSError):
                self.leases.renew()

    @property
    def running(self) -> bool:
        """Whether it can be given a job."""
        return self.alive and not self.paused_at

    @property
    def in_flight(self) -> int:
        """Calls that are under way."""
        pool = self._pool()
        return len(pool.tasks) if pool else 0

    def lanes(self) -> Mapping[int, Lane]:
        """Return the lanes it takes for its own."""
        return dict(self._lanes._lanes) if self._lanes is not None else {}

    # -- its thread -------------------------------------------------------------------------------

    def _do(self, job: Callable[[], None], pause: tuple[str, int]) -> None:
        assert self.running, f"{self.name} cannot do anything"
        self._armed = pause
        self._job = job
        self._wait()

    def _wait(self) -> None:
        self._go.release()
        assert self._back.acquire(timeout=JOB_SECONDS), f"{self.name} does not come back"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while not self._over:
            self._go.acquire()
            if self._over:
                return
            try:
                self._serve(self._job)
            except Killed:
                return
            except BaseException as error:
                self._error = error
            self._back.release()

    def _serve(self, job: Callable[[], None] | None) -> None:
        """As `memorybus_workers.hosting.runner` does: leave if it breaks, and begin anew later."""
        assert job is not None
        try:
            job()
        except (MemoryBusError, RedisError, OSError) as error:
            self._breaker.note_failure(self._clock.monotonic(), str(error))
            self._close()

    def _turn(self) -> None:
        if self._lanes is None:
            if self._clock.monotonic() < self._breaker.until:
                return
            self._lanes = self._open()
        self._lanes.balance(self.wanted)
        self._lanes.look_at_all()
        self._lanes.step(set())

    def _call(self, index: int) -> None:
        pool = self._pool()
        if pool is not None and pool.tasks:
            pool.run(index)

    def _open(self) -> LaneSet:
        config = ProviderConfig(name=self._instance, home=Path(), crash=self._pass)
        provider = KINDS[self._kind](config, self._backend)
        activity = ThreadActivity(self._clock)
        context = InstanceContext(self._worker, self._instance, Role(self._instance), self._pass)
        instance = OpenInstance(context, provider, activity, self._failing_events, self._breaker)
        lanes = LaneSet(instance, self._stop, lambda: None)
        if isinstance(lanes.applier, ParallelApplier):
            lanes.applier.pool = HandPool(self._clock, lanes.applier._run)
        return lanes

    def _pool(self) -> HandPool | None:
        applier = self._lanes.applier if self._lanes is not None else None
        pool = applier.pool if isinstance(applier, ParallelApplier) else None
        return pool if isinstance(pool, HandPool) else None

    def _close(self) -> None:
        if self._lanes is None:
            return
        pool = self._pool()
        if pool is not None:
            pool.hurry = True
        lanes, self._lanes = self._lanes, None
        lanes.leave()

    def _pass(self, point: str) -> None:
        """Pass a crash point, or stand still at it."""
        if self._over:
            raise Killed
        name, left = self._armed
        if point != name:
            return
        self._armed = (name, left - 1)
        if left == 1:
            self.paused_at = point
            self._back.release()
            self._go.acquire()
            if self._over:
                raise Killed

    @property
    def is_in_call(self) -> bool:
        """Whether it stands still in a call whose effect no epoch can hold back (G5)."""
        return self.paused_at == IN_FLIGHT and self._kind != "transactional"
