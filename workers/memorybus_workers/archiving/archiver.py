"""The archiver is a thread of each worker that moves the log's past into the archive."""

import logging
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress

from memorybus.archive.seals import ArchiverReport, SealReports
from memorybus.clock import SYSTEM, Clock
from memorybus.concurrency.backoff import backoff
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import new_mark
from memorybus.processes.reports import ArchiverRun
from memorybus.redis.connect import connect_redis, connected, translate_redis_error
from memorybus.redis.keys import ARCHIVE_LANE, Keys, lane_name
from memorybus.registry.roster import worker_id
from memorybus.testing import CrashPoint, crash_points, no_crash
from memorybus.text.redact import one_line
from redis import Redis
from redis.exceptions import RedisError
from structlog.contextvars import bind_contextvars

from memorybus_workers.archiving.round import ArchivingRound, summarize_errors
from memorybus_workers.archiving.sealer import SealingContext
from memorybus_workers.lanes.leases import Leases
from memorybus_workers.logs import unbind_lane

_log = logging.getLogger("memorybus")
MAX_POLL_SECONDS = 5.0
"""The most seconds between looks; there are fewer if segments are sealed sooner."""

_MIN_POLL_SECONDS = 0.1
_POLLS_BEFORE_TAKEOVER = 4  # for how many looks due work is left to the worker that archived last
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 30.0
"""Seconds between tries while the archive cannot be used."""

_JOIN_SECONDS = 5.0


def look_interval(settings: Settings) -> float:
    wait = max(settings.seal_after, settings.segment_age) / 10
    return min(MAX_POLL_SECONDS, max(_MIN_POLL_SECONDS, wait))


class ArchiverThread:
    """Archives on a separate thread, until told to stop."""

    def __init__(
        self, settings: Settings, clock: Clock, worker: str, rng: random.Random, crash: CrashPoint
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._worker = worker
        self._rng = rng
        self._crash = crash
        self._stop = threading.Event()
        self._logged_error = ""
        self._reported_at = float("-inf")
        self._archiving: ArchivingRound | None = None
        self._redis = connect_redis(settings)
        self._reports = SealReports(self._redis, Keys(settings.namespace))
        self._leases = Leases(settings, clock, worker)
        self._thread = threading.Thread(target=self._run, name="memorybus-archiver", daemon=True)

    def start(self) -> None:
        self._leases.start()
        self._thread.start()

    def stop(self) -> None:
        """End the thread if it runs; an upload that hangs is abandoned, and its lease expires."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)
            with suppress(RedisError, OSError):
                self._reports.remove_worker(self._worker)
            self._leases.stop()
        self._redis.close()

    def _run(self) -> None:
        bind_contextvars(provider=ARCHIVE_LANE)
        failures = 0
        while not self._stop.is_set():
            try:
                self._archiving = self._archiving or self._make_archiving()
                self._archiving.run()
                unbind_lane()
                self._publish_state(self._archiving)
                failures = failures + 1 if self._archiving.unreached else 0
            except Exception as error:  # the thread must outlive any mistake
                self._report_failure(self._archiving, error)
                failures += 1
            wait = (
                backoff(failures - 1, self._rng, first=_FIRST_RETRY_SECONDS, cap=_MAX_RETRY_SECONDS)
                if failures
                else 0.0
            )
            self._stop.wait(max(wait, look_interval(self._settings)))

    def _make_archiving(self) -> ArchivingRound:
        return make_archiving(
            self._settings,
            self._clock,
            self._leases,
            self._redis,
            crash=self._crash,
            stopping=self._stop.is_set,
            progress=self._report_progress,
        )

    def _publish_state(self, archiving: ArchivingRound) -> None:
        error = summarize_errors(archiving.all_errors)
        self._report(archiving, error)
        self._log(error)  # not before: a Redis that can only be read archives nothing
        self._reports.remove_silent_workers(archiving.now_ms, self._settings.partitions)

    def _report_failure(self, archiving: ArchivingRound | None, error: Exception) -> None:
        """Log a failure once; report it if Redis can be reached."""
        if isinstance(error, RedisError):
            error = translate_redis_error(error, redacted(self._settings.redis_url))
        known = isinstance(error, MemoryBusError | OSError)
        self._log(str(error), None if known else error)
        if archiving is not None and archiving.now_ms:
            with suppress(RedisError, OSError):
                self._report(archiving, str(error))

    def _report_progress(self) -> None:
        if (
            self._archiving is not None
            and self._clock.monotonic() - self._reported_at >= MAX_POLL_SECONDS
        ):
            self._report(self._archiving, summarize_errors(self._archiving.all_errors))

    def _report(self, archiving: ArchivingRound, error: str) -> None:
        shown = one_line(error, self._settings.secrets)
        damaged = bool(archiving.errors)
        self._reported_at = self._clock.monotonic()
        report = ArchiverReport(
            self._reports.now_ms(), archiving.place, shown, archiving.elsewhere, damaged
        )
        self._reports.write_report(self._worker, report)

    def _log(self, error: str, unknown: Exception | None = None) -> None:
        if error and error != self._logged_error:
            _log.warning("nothing is archived: %s", error, exc_info=unknown)
        if self._logged_error and not error:
            _log.info("archiving continues")
        self._logged_error = error


def make_archiving(
    settings: Settings,
    clock: Clock,
    leases: Leases,
    redis: Redis,
    *,
    crash: CrashPoint = no_crash,
    stopping: Callable[[], bool] = lambda: False,
    progress: Callable[[], None] = lambda: None,
    patience: float | None = None,
) -> ArchivingRound:
    context = SealingContext(redis, settings, clock, leases, crash, stopping, progress)
    return ArchivingRound(
        context, _POLLS_BEFORE_TAKEOVER * look_interval(settings) if patience is None else patience
    )


def run_once(settings: Settings, clock: Clock = SYSTEM) -> ArchiverRun:
    """Seal all that may be sealed, even in small segments; then compact and trim."""
    leases = Leases(settings, clock, worker_id(os.getpid(), new_mark()))
    leases.start()
    try:
        with connected(settings) as redis:
            crash = crash_points(settings.crash_at)
            archiving = make_archiving(settings, clock, leases, redis, crash=crash)
            events = archiving.run(force=True)
    finally:
        leases.stop()
    errors = {lane_name(partition): text for partition, text in archiving.all_errors.items()}
    busy = tuple(lane_name(partition) for partition in sorted(archiving.busy))
    return ArchiverRun(archiving.place, events, archiving.elsewhere, errors, busy)
