"""Runs one provider instance on its lanes, on one thread."""

import fcntl
import logging
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path

from memorybus import private
from memorybus.concurrency.backoff import backoff
from memorybus.errors import LogUnavailable, MemoryBusError, Unavailable
from memorybus.redis.connect import connect_redis
from memorybus.text.redact import describe_error
from memorybus_providers.base import MemoryProvider
from redis.exceptions import RedisError
from structlog.contextvars import bind_contextvars

from memorybus_workers.apply.applier import OpenInstance
from memorybus_workers.apply.pool import Pool
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.calls.retry import describe_failure
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.hosting.instances import make_in_role
from memorybus_workers.hosting.lane_set import LaneSet
from memorybus_workers.lanes.context import InstanceContext
from memorybus_workers.lanes.leases import Lease
from memorybus_workers.logs import RateLimitedWarning, unbind_lane

_log = logging.getLogger("memorybus")
LOG_RETRY_SECONDS = 2.0  # the most seconds between two looks whether Redis serves again


class Runner:
    """Runs one instance of a provider on one thread, which ends after `stop` or `abandon`."""

    def __init__(
        self, context: InstanceContext, failing_events: FailingEvents, breaker: Breaker
    ) -> None:
        # the call that its thread is busy with
        self.activity = ThreadActivity(context.worker.clock)
        self.failing_events = failing_events  # what is known of failing events
        # set after the first attempt to acquire the lanes, or at the first failure
        self.ready = threading.Event()
        self.opened = threading.Event()
        self.wanted: frozenset[int] = frozenset()  # the lanes that it is to have
        self.serving = False  # whether an instance is open and works on its lanes
        self._context = context
        self._name = context.name
        self._settings = context.worker.settings
        self._clock = context.worker.clock
        self._breaker = breaker
        self._lanes: LaneSet | None = None
        self._provider: MemoryProvider | None = None
        self._inbox = context.worker.news.subscribe()
        self._was_asked = False
        self._redo_asked = False
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._abandoned = False
        self._log_failures = 0
        self._log_away = RateLimitedWarning(
            f"provider {context.name}: %s; its lanes look again every {LOG_RETRY_SECONDS:g} s",
            self._clock,
        )
        thread_name = f"memorybus-{context.name}"
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def assign_lanes(self, partitions: frozenset[int]) -> None:
        if partitions != self.wanted or not self._was_asked:
            self.wanted = partitions
            self._was_asked = True
            self._inbox.put()

    def request_redo(self) -> None:
        self._redo_asked = True
        self._inbox.put()

    def retry_now(self) -> None:
        self._hurry.set()
        self._inbox.put()

    def stop(self) -> None:
        """Ask the thread to end after its present batch."""
        self._stop.set()
        self._hurry.set()
        self._inbox.put()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def report(self) -> str:
        """What the open instance reports about itself; "" for nothing, or if none is open."""
        provider, lanes = self._provider, self._lanes
        if lanes and lanes.allowance.why:
            return lanes.allowance.why
        try:
            return provider.report() if provider else ""
        except Exception as error:  # a provider of anybody's
            return f"cannot report its state: {describe_error(error)}"

    @property
    def pool(self) -> Pool | None:
        """The threads of a provider that allows several calls at once."""
        return self._lanes.applier.pool if self._lanes else None

    def activities(self) -> list[ThreadActivity]:
        return [self.activity, *(self.pool.activities() if self.pool else ())]

    def abandon(self) -> list[Lease]:
        """Give the thread up; return its leases, which the caller has to release."""
        self._abandoned = True
        self._stop.set()
        self._hurry.set()
        self._context.worker.news.unsubscribe(self._inbox)
        return self._lanes.leases() if self._lanes else []

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        bind_contextvars(provider=self._name)
        self._wait(max(0.0, self._breaker.until - self._clock.monotonic()))
        while not self._stop.is_set():
            try:
                self._serve()
            except BaseException as error:  # the thread must outlive any mistake
                self._pause(error)
        self._context.worker.news.unsubscribe(self._inbox)

    def _serve(self) -> None:
        context = self._context
        connect_redis(self._settings, single=True).close()
        provider = make_in_role(
            self._settings, context.name, context.role, self._clock, context.crash
        )
        pool: Pool | None = None
        leaving = ExitStack()
        leaving.enter_context(self._use_store(provider))
        leaving.callback(provider.shutdown)
        try:
            self._call_watched("open", provider.open)
            self._provider = provider
            instance = OpenInstance(
                context, provider, self.activity, self.failing_events, self._breaker
            )
            lanes = LaneSet(instance, self._stop, self._inbox.put)
            pool = lanes.applier.pool
            self._run_lanes(lanes)
        finally:
            self._provider = None
            if pool is None or pool.release(partial(self._close_late, leaving)):
                self._call_watched("shutdown", leaving.close)

    def _close_late(self, leaving: ExitStack) -> None:
        """Close an instance after its last abandoned call has returned after all.

        Closing an instance during such a call might end the whole process: SQLite crashes when a
        connection is closed while another thread uses it.
        """
        try:
            leaving.close()
        except Exception as error:
            _log.warning("provider %s could not be closed: %s", self._name, describe_error(error))

    def _use_store(self, provider: MemoryProvider) -> AbstractContextManager[object]:
        if provider.placement != "local":
            return nullcontext()
        return closing(StoreUse(provider.config.home, self._settings.log_name))

    def _call_watched(self, what: str, call: Callable[[], None]) -> None:
        self.activity.enter(what)
        try:
            call()
        finally:
            self.activity.end()

    def _run_lanes(self, lanes: LaneSet) -> None:
        self._lanes = lanes
        self.serving = True
        self.opened.set()
        try:
            while not self._stop.is_set():
                was_asked = self._was_asked
                self._balance(lanes)
                if was_asked:
                    self.ready.set()
                news, redo = self._inbox.take(), self._redo_asked
                self._redo_asked = False
                if self._hurry.is_set() and not self._stop.is_set():
                    self._hurry.clear()
                    lanes.retry_now()
                lanes.step(news, redo=redo)
                self._log_failures = 0
                rest = lanes.seconds_to_rest()
                if rest and not self._stop.is_set():
                    self._inbox.wait(rest)
        finally:
            self.serving = False
            lanes.leave()  # an abandoned thread does so too, if its call ever returns

    def _balance(self, lanes: LaneSet) -> None:
        before = {lease.key for lease in lanes.leases()}
        lanes.balance(self.wanted)
        unbind_lane()
        now = {lease.key for lease in lanes.leases()}
        if before != now:
            _log.info(
                "provider %s: %d lanes taken, %d given up, %d owned",
                self._name,
                len(now - before),
                len(before - now),
                len(now),
            )

    def _pause(self, error: BaseException) -> None:
        self.activity.end()
        if self._abandoned:
            return
        unbind_lane()
        self.opened.set()
        self.ready.set()
        if isinstance(error, LogUnavailable):
            self._await_log(error)
        else:
            self._await_backend(error)

    def _await_log(self, error: LogUnavailable) -> None:
        """Wait for Redis; nothing is known to be wrong with the provider."""
        self._log_away.warn(error)
        rng = self._context.worker.rng
        self._wait(backoff(self._log_failures, rng, cap=LOG_RETRY_SECONDS))
        self._log_failures += 1

    def _await_backend(self, error: BaseException) -> None:
        delay = self._breaker.note_failure(self._clock.monotonic(), describe_failure(error))
        known = isinstance(error, MemoryBusError | RedisError | OSError)
        _log.warning(
            "provider %s: %s; its lanes wait %.1f s, nothing is parked",
            self._name,
            error,
            delay,
            exc_info=None if known else error,
        )
        self._wait(delay)

    def _wait(self, seconds: float) -> None:
        """Wait, at most until the runner is stopped or an operator asks for another try now."""
        self._hurry.wait(seconds)
        if self._hurry.is_set() and not self._stop.is_set():
            self._hurry.clear()
            self._breaker.retry_now()


_PREFIX = "used-by-"


class StoreUse:
    """Keeps a local store for the workers of one log until `close`: they hold a shared lock.

    Workers of two logs in one data directory would overwrite each other's positions and memories.
    """

    def __init__(self, home: Path, log: str) -> None:
        private.directory(home)
        ours = home / f"{_PREFIX}{log}"
        self._held = os.open(ours, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_SH)
        for other in home.glob(f"{_PREFIX}*"):
            if other != ours and _is_held(other):
                self.close()
                raise Unavailable(
                    f"{home} is in use by workers of another log ({other.name[len(_PREFIX) :]}); "
                    f"stop those workers, or give one of the two logs another data_dir"
                )

    def close(self) -> None:
        os.close(self._held)


def _is_held(path: Path) -> bool:
    try:
        other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return True
    finally:
        os.close(other)
    return False
