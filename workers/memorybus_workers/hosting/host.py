"""A provider's host keeps a runner at work, and replaces a runner if its call hangs.

A call that exceeds its deadline cannot be stopped. If the runner's thread made it, the thread is
abandoned with its instance and its leases, and a new instance takes over. In a pool of threads only
the thread that hangs is replaced. What an abandoned call still does is fenced by the epoch (G5), or
waited for if it would count twice (`calls/thread_activity.py`, G4). No agent waits for any of this
(G9).
"""

import contextlib
import logging

from memorybus.errors import ProviderHung
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.apply.pool import PoolThread
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.hosting.runner import Runner
from memorybus_workers.lanes.context import InstanceContext

_log = logging.getLogger("memorybus")
MOST_HUNG = 8
"""The most instances of one provider that may hang, and the most threads of its pool (G10)."""


class ProviderHost:
    """Keeps one provider running, and replaces what hangs."""

    def __init__(self, context: InstanceContext) -> None:
        worker = context.worker
        self.name = context.name
        self._context = context
        self._settings = worker.settings
        self._clock = worker.clock
        self._leases = worker.leases
        self._breaker = Breaker(worker.rng)
        self._hung: list[Runner | PoolThread] = []
        failing_events = FailingEvents(worker.clock, worker.rng, worker.settings.attempts)
        self._runner = Runner(context, failing_events, self._breaker)

    def start(self) -> None:
        self._runner.start()

    def assign_lanes(self, partitions: frozenset[int]) -> None:
        self._runner.assign_lanes(partitions)

    def request_redo(self) -> None:
        """Tell the runner that operators have requests about the provider's dead letters."""
        self._runner.request_redo()

    def retry_now(self) -> None:
        """Tell the runner to retry now the events that wait for another try."""
        self._runner.retry_now()

    @property
    def serving(self) -> bool:
        return self._runner.serving

    @property
    def failing(self) -> str:
        """Why calls fail, as long as none succeeds; empty if they do not fail."""
        return self._breaker.why

    @property
    def failing_for(self) -> float:
        return self._breaker.failing_for(self._context.worker.clock.monotonic())

    @property
    def report(self) -> str:
        return self._runner.report

    def wait_opened(self, timeout: float) -> bool:
        """Wait until an instance is open, or the first failure."""
        return self._runner.opened.wait(timeout)

    def wait_ready(self, timeout: float) -> bool:
        """Wait until the lanes have been tried for once, or the first failure."""
        return self._runner.ready.wait(timeout)

    def watch(self, redis: Redis) -> None:
        """Replace what has exceeded its time limit: a thread of the pool, or the whole runner."""
        timeout = self._settings.call_timeout
        pool = self._runner.pool
        for event_id in pool.watch(timeout) if pool else ():
            self._log_hung(event_id)
        self._hung += pool.take_hung() if pool else []
        self._hung = [runner for runner in self._hung if runner.alive]
        if len(self._hung) >= MOST_HUNG + (self._context.concurrency if pool else 0):
            raise self._too_many_hang(len(self._hung))
        what = self._runner.activity.hanging_call(timeout)
        if what:
            self._replace(what, redis)

    def _too_many_hang(self, hung: int) -> ProviderHung:
        return ProviderHung(
            f"provider {self.name}: {hung} calls hang, and only the end of this process frees "
            f"their threads; another process takes over. Repair the backend"
        )

    def _log_hung(self, what: str) -> None:
        _log.error(
            "provider %s: a call (%s) has taken longer than it may; it is abandoned",
            self.name,
            what,
            extra={"provider": self.name},
        )

    def _replace(self, what: str, redis: Redis) -> None:
        backend_up = self._breaker.is_closed
        self._breaker.note_failure(self._clock.monotonic(), f"a call hangs: {what}")
        hanging = self._runner
        self._hung.append(hanging)
        self._log_hung(what)
        if hanging.activity.in_hook:
            hanging.failing_events.note_hang(what, backend_up=backend_up)
        activities = [*hanging.activities(), *(runner.activity for runner in self._hung)]
        free = self._leases.give_up(hanging.abandon(), activities)
        failing_events = hanging.failing_events.copy()
        self._runner = Runner(self._context, failing_events, self._breaker)
        self._runner.assign_lanes(hanging.wanted)
        self._runner.start()
        with contextlib.suppress(RedisError, OSError):  # without Redis they expire
            self._leases.release(redis, free)

    def stop(self) -> None:
        self._runner.stop()

    @property
    def alive(self) -> bool:
        return self._runner.alive

    def join(self) -> None:
        """Wait for the thread to end, for a bounded time."""
        self._runner.join(self._settings.call_timeout + 2.0)

    def give_up(self) -> None:
        """Stop renewing the leases of a thread that was stopped and does not end."""
        for lease in self._runner.abandon():
            self._leases.drop(lease)
