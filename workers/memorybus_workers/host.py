"""A provider's host: the thread that runs its lanes, and the watch over that thread.

One thread per provider instance runs its lanes one after another, which is faster than a thread
per lane and lets no provider wait for another. A call that outlives its deadline cannot be
stopped, so its thread is abandoned with its instance and its leases, and a new instance goes on:
what the old one still does is fenced by the epoch (G5), and the agent has long gone on (G9).
"""

import contextlib
import logging
import threading
from collections.abc import Callable

from memorybus.errors import MemoryBusError, ProviderHung
from memorybus_providers.base import MemoryProvider
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.calls import Calls
from memorybus_workers.lane_set import LOOK_AROUND, LaneSet, Surroundings
from memorybus_workers.leases import Lease
from memorybus_workers.retry import Breaker

_log = logging.getLogger("memorybus")

MakeProvider = Callable[[], MemoryProvider]

_STOP = 2.0

MOST_HUNG = 8
"""Threads of one provider that may hang at once (G10)."""


class Runner:
    """One instance of a provider on one thread. It ends by itself after `stop` or `abandon`."""

    def __init__(
        self, name: str, make: MakeProvider, around: Surroundings, calls: Calls, breaker: Breaker
    ) -> None:
        """Prepare; `start` begins."""
        self.calls = calls
        self.ready = threading.Event()
        self._name = name
        self._make = make
        self._around = around
        self._breaker = breaker
        self._lanes: LaneSet | None = None
        self._dirty: set[int] = set()
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name=f"memorybus-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tell(self, partitions: set[int]) -> None:
        """Say that some partitions have news."""
        with self._news:
            self._dirty |= partitions
            self._news.notify()

    def stop(self) -> None:
        """Ask the thread to end after its present batch."""
        self._stop.set()
        self.tell(set())

    def join(self) -> None:
        """Wait for the thread, not for ever."""
        self._thread.join(_STOP)

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def abandon(self) -> list[Lease]:
        """Give the thread up; return the leases it held, for the caller to release."""
        self._abandoned = True
        self._stop.set()
        return self._lanes.leases() if self._lanes else []

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        self._stop.wait(max(0.0, self._breaker.until - self._around.clock.monotonic()))
        while not self._stop.is_set():
            try:
                self._serve()
            except BaseException as error:  # the thread must outlive any mistake
                self._pause(error)

    def _serve(self) -> None:
        """Open an instance, run its lanes until something breaks, leave nothing behind."""
        provider = self._opened()
        try:
            self._run_lanes(LaneSet(self._name, provider, self._around, self.calls, self._stop))
        finally:
            provider.shutdown()

    def _run_lanes(self, lanes: LaneSet) -> None:
        self._lanes = lanes
        try:
            while not self._stop.is_set():
                lanes.acquire()
                self.ready.set()
                if lanes.step(self._taken_dirty()):
                    self._breaker.succeeded()
                self._await_news(lanes)
        finally:
            lanes.leave()  # an abandoned thread too, should its call ever return

    def _opened(self) -> MemoryProvider:
        provider = self._make()
        self.calls.begin("open")
        try:
            provider.open()
        finally:
            self.calls.end()
        return provider

    def _taken_dirty(self) -> set[int]:
        with self._news:
            dirty, self._dirty = self._dirty, set()
        return dirty

    def _await_news(self, lanes: LaneSet) -> None:
        with self._news:
            rest = lanes.rest()
            if rest and not (self._dirty or self._stop.is_set()):
                self._news.wait(rest)
                if not self._dirty and rest == LOOK_AROUND:
                    lanes.look_at_all()  # a lost word must not stop a lane

    def _pause(self, error: BaseException) -> None:
        self.calls.end()
        if self._abandoned:
            return
        delay = self._breaker.failed(self._around.clock.monotonic())
        known = isinstance(error, MemoryBusError | RedisError | OSError)
        _log.warning(
            "provider %s: %s; its lanes wait %.1f s, nothing is parked",
            self._name,
            error,
            delay,
            exc_info=None if known else error,
        )
        self.ready.set()
        self._stop.wait(delay)


class ProviderHost:
    """Keeps one provider running: replaces a runner whose call hangs.

    Args:
        name: the instance's name.
        make: makes an unopened instance.
        around: see `Surroundings`.
    """

    def __init__(self, name: str, make: MakeProvider, around: Surroundings) -> None:
        """Prepare; `start` begins."""
        self.name = name
        self._make = make
        self._around = around
        settings = around.settings
        self._breaker = Breaker(around.rng)
        self._hung: list[Runner] = []
        calls = Calls(around.clock, around.rng, settings.attempts)
        self._runner = Runner(name, make, around, calls, self._breaker)

    def start(self) -> None:
        """Start the thread."""
        self._runner.start()

    def tell(self, partitions: set[int]) -> None:
        """Say that some partitions have news."""
        self._runner.tell(partitions)

    def wait_ready(self, timeout: float) -> bool:
        """Wait until the lanes have been tried for once, or the first failure."""
        return self._runner.ready.wait(timeout)

    def watch(self, redis: Redis) -> None:
        """Replace the runner if its call has outlived `call_timeout`, each time after a pause.

        Raises:
            ProviderHung: too many threads hang; a thread cannot be ended, so the process must.
        """
        timeout = self._around.settings.call_timeout
        event_id = self._runner.calls.hanging(timeout)
        self._hung = [runner for runner in self._hung if runner.alive]
        if not event_id:
            return
        if len(self._hung) >= MOST_HUNG:
            raise ProviderHung(
                f"provider {self.name}: {len(self._hung)} calls hang; this worker ends, since "
                f"threads cannot be ended alone. Another one goes on; mend the backend"
            )
        self._breaker.failed(self._around.clock.monotonic())
        self._hung.append(self._runner)
        _log.error(
            "provider %s: a call for event %s hangs since over %.1f s; the instance is abandoned, "
            "a new one goes on",
            self.name,
            event_id,
            timeout,
        )
        self._runner.calls.hung(event_id)
        calls = self._runner.calls.successor()
        leases = self._runner.abandon()
        self._runner = Runner(self.name, self._make, self._around, calls, self._breaker)
        self._runner.start()
        with contextlib.suppress(RedisError, OSError):  # without Redis they expire
            self._around.leases.release(redis, leases)

    def stop(self) -> None:
        """Ask the thread to end."""
        self._runner.stop()

    def join(self) -> None:
        """Wait for the thread, not for ever."""
        self._runner.join()
