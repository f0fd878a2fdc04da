"""The process that runs one provider's recall jobs with RQ, also in cases that RQ does not expect.

RQ's own times are minutes. Here a job whose process was killed runs again within seconds, a hung
provider ends its process, and every key has a time to live. A job may call only what an allow-list
names (`allowed_job`).

RQ repeats a job that is in its registry of started jobs for too long. Its process prolongs that
time each second, by the clock of Redis, so that no clocks of two hosts are compared. A job that was
taken and has not begun is in RQ's intermediate list, for moments only.
"""

import faulthandler
import logging
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from types import MappingProxyType
from typing import Any, ClassVar, cast

from memorybus.clock import SYSTEM, Clock
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.jobs import inspect, tools
from memorybus.recall.health import RecallHealth
from memorybus.recall.queue import JOB, JOB_TTL_SECONDS, longest_run, rq_queue
from memorybus.redis.connect import connect_jobs, connect_redis, redis_errors
from memorybus.redis.facts import read_server_ms
from memorybus.redis.keys import Keys
from memorybus.testing import CrashPoint, crash_points
from memorybus.text.redact import describe_error, mask_trace_tail
from redis.exceptions import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import AbandonedJobError, DeserializationError
from rq.executions import Execution
from rq.job import Job, JobStatus
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker_registration import WORKERS_BY_QUEUE_KEY, clean_worker_registry
from structlog.contextvars import bind_contextvars

from memorybus_workers.jobs.inspect import InspectionRunner
from memorybus_workers.jobs.live import LiveInstances
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller
from memorybus_workers.jobs.prompts import OVERTIME_SECONDS, PromptAnswerer
from memorybus_workers.jobs.tools import ToolRunner

_log = logging.getLogger("memorybus")
_LOOK_EVERY = 1
"""Seconds between two searches for lost jobs, and between the signs of life of a running job."""

_LOST_SECONDS = 4  # seconds without a sign of life after which a job counts as lost

UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    DeserializationError,
)
"""Errors that RQ raises for an unreadable job, which any program may have written to Redis."""

_RQ_MARGIN_SECONDS = 15
"""RQ waits for a job for so many seconds less than it lets a process be silent."""


LIST_TTL_SECONDS = 300  # seconds for which RQ's lists of a queue stay after their last use


AllowList = Mapping[str, Callable[..., Any]]


class JobsEnded(MemoryBusError):
    """The loop that runs jobs ended without having been stopped."""


class _RqLog(logging.LoggerAdapter[logging.Logger]):
    """RQ's log. It keeps an error that RQ's loop caught, since the loop then ends as if stopped."""

    caught: BaseException | None = None

    def error(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.caught = sys.exc_info()[1]
        super().error(msg, *args, **kwargs)


class JobWorker(SimpleWorker):
    """Works off one queue in this process; see the module for what it adds to RQ's worker."""

    max_connection_wait_time = 1.0

    def __init__(
        self,
        queue: Queue,
        clock: Clock,
        on_killed: Callable[[], None],
        longest: int,
        crash: CrashPoint,
        secrets: Collection[str] = frozenset(),
    ) -> None:
        super().__init__(
            [queue],
            connection=queue.connection,
            serializer=JSONSerializer,
            job_class=queue.job_class,
            exception_handlers=[self._note_failure],
            worker_ttl=_LOOK_EVERY + _RQ_MARGIN_SECONDS,
        )
        self._rq_log = _RqLog(self.log, {})
        self.log = cast("logging.Logger", self._rq_log)
        self._queue = queue
        self._clock = clock
        self._on_killed = on_killed
        self._longest = longest
        self._crash = crash
        self._secrets = secrets
        self._look_at = 0.0
        self._taken: dict[bytes, float] = {}
        self._ended = threading.Event()

    def work_until_stopped(self) -> None:
        """Run jobs until SIGTERM or SIGINT. `JobsEnded`: another error ended the loop."""
        heart = threading.Thread(target=self._beat, name="memorybus-job-heart", daemon=True)
        heart.start()
        try:
            # RQ logs nothing, because we log its errors ourselves.
            self.work(with_scheduler=False, logging_level="CRITICAL")
        finally:
            self._ended.set()
        if self._shutdown_requested_date is None:
            raise self._end_reason()

    def _end_reason(self) -> Exception:
        caught = self._rq_log.caught
        if isinstance(caught, RedisError):
            return caught
        why = describe_error(caught) if caught else "no reason is known"
        return JobsEnded(f"{self._queue.name}: an unexpected error ended the recall process: {why}")

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Take the next job; an entry that is not a job is logged and does not end the process."""
        while True:
            try:
                return super().dequeue_job_and_maintain_ttl(timeout, max_idle_time)
            except UNREADABLE as error:  # it is removed from the intermediate list
                _log.warning("%s holds what is no job: %s", self._queue.key, describe_error(error))

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run one job; if its provider ignores the time-out, the process ends."""
        self._crash("recall.taken")
        job.timeout = self._longest
        with end_process_after(self._longest + OVERTIME_SECONDS):
            # A context of its own: what a job binds for its log lines ends with the job.
            copy_context().run(super().execute_job, job, queue)

    def handle_job_failure(
        self,
        job: Job,
        queue: Queue,
        started_job_registry: StartedJobRegistry | None = None,
        exc_string: str = "",
        execution: Execution | None = None,
    ) -> None:
        """Let RQ store why a job failed as in a dead letter: bounded, with credentials masked."""
        kept = mask_trace_tail(exc_string, self._secrets)
        super().handle_job_failure(job, queue, started_job_registry, kept, execution)
        self.connection.expire(self._queue.failed_job_registry.key, LIST_TTL_SECONDS)

    def subscribe(self) -> None:
        """Take no commands, since anybody who can write to Redis could send RQ's command to end."""

    @property
    def should_run_maintenance_tasks(self) -> bool:
        return self._clock.monotonic() >= self._look_at

    def run_maintenance_tasks(self) -> None:
        """Repeat jobs that killed processes left, and let all keys that RQ leaves expire."""
        self._look_at = self._clock.monotonic() + _LOOK_EVERY
        alone = f"{self._queue.key}:cleaning"  # else two processes could repeat one job
        if self.connection.set(alone, self.name, nx=True, px=_LOOK_EVERY * 900):
            self._repeat_started()
        self._put_back_taken()
        self._queue.failed_job_registry.cleanup()
        clean_worker_registry(self._queue)
        with self.connection.pipeline(transaction=False) as pipe:
            for key in self._list_keys():
                pipe.expire(key, LIST_TTL_SECONDS)
            pipe.expire(self._queue.key, JOB_TTL_SECONDS)
            pipe.execute()

    def _repeat_started(self) -> None:
        """Let RQ enqueue the jobs of killed processes again, or give them up."""
        registry, now = self._queue.started_job_registry, self._server_seconds()
        try:
            registry.cleanup(now, [self._note_failure])
        except UNREADABLE as error:
            _log.warning("%s holds what is no job: %s", registry.key, describe_error(error))
            self.connection.zremrangebyscore(registry.key, 0, now)

    def _put_back_taken(self) -> None:
        """Enqueue jobs that a killed process took and did not begin; drop what is no job."""
        key, now = self._queue.intermediate_queue_key, self._clock.monotonic()
        taken = cast("list[bytes]", self.connection.lrange(key, 0, -1))
        self._taken = {job_id: self._taken.get(job_id, now) for job_id in taken}
        for job_id, since in self._taken.items():
            lost = now - since >= _LOST_SECONDS
            if lost and self.connection.lrem(key, 0, cast("str", job_id)):
                with suppress(*UNREADABLE):
                    if job := self._queue.fetch_job(job_id.decode()):
                        self._queue.push_job_id(job.id, at_front=True)

    def _list_keys(self) -> tuple[str, ...]:
        return (
            self._queue.intermediate_queue_key,
            self._queue.started_job_registry.key,
            self._queue.failed_job_registry.key,
            WORKERS_BY_QUEUE_KEY % self._queue.name,
        )

    def _beat(self) -> None:
        """Show each second, in a separate thread, that the running job's process lives."""
        while not self._ended.wait(_LOOK_EVERY):
            try:
                self._show_life()
            except (RedisError, OSError) as error:
                _log.debug("no sign of a running job: %s", error)

    def prepare_execution(self, job: Job) -> Execution:
        """Note as RQ does that a job begins; it counts as lost without a sign of life."""
        execution = super().prepare_execution(job)
        self._show_life()
        return execution

    def _show_life(self) -> None:
        key, until = self._queue.started_job_registry.key, self._server_seconds() + _LOST_SECONDS
        running = tuple(self.executions.values())
        with self.connection.pipeline(transaction=False) as pipe:
            for execution in running:
                # With `xx` only an existing sign changes: the job may have ended just now.
                pipe.zadd(key, {execution.composite_key: until}, xx=True)
            pipe.expire(key, LIST_TTL_SECONDS)
            pipe.execute()

    def _server_seconds(self) -> float:
        return read_server_ms(self.connection) / 1000

    def _note_failure(self, job: Job, _kind: object, error: BaseException, _trace: object) -> None:
        _log.warning("job %s of %s failed: %s", job.id, job.origin, describe_error(error))
        if isinstance(error, AbandonedJobError):
            self._on_killed()


@contextmanager
def end_process_after(seconds: float) -> Iterator[None]:
    """End this process, with its stacks on stderr, if the body takes longer.

    The watch needs no interpreter: it also ends a library that hangs in C.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def run_jobs(settings: Settings, provider: str) -> None:
    bind_contextvars(provider=provider)
    crash = crash_points(settings.crash_at)
    redis = connect_redis(settings)
    instances = LiveInstances(settings, SYSTEM, redis, provider, crash)
    applied = ReadYourWrites(redis, Keys(settings.namespace), settings.recall_wait, SYSTEM)
    recaller = Recaller(redis, settings, SYSTEM, instances, applied, crash)
    prompts = PromptAnswerer(settings, provider, crash)
    runner = ToolRunner(redis, settings, SYSTEM, instances, applied)
    inspecting = InspectionRunner(redis, settings, SYSTEM, instances.visit)
    allowed: AllowList = {
        JOB: recaller.warm,
        tools.JOB: runner.run,
        inspect.JOB: inspecting.run,
    }
    health = RecallHealth(redis, Keys(settings.namespace))

    def note_killed() -> None:
        health.note_failure(
            provider, "the process of a recall was killed, or hung", SYSTEM.now_ms()
        )

    prompts.start()
    try:
        with redis_errors(redacted(settings.redis_jobs_url)):
            job_worker(settings, provider, allowed, note_killed, crash).work_until_stopped()
    finally:
        prompts.stop()
        instances.close_all()


def job_worker(
    settings: Settings,
    provider: str,
    allowed: AllowList,
    on_killed: Callable[[], None],
    crash: CrashPoint,
) -> JobWorker:
    logging.getLogger("rq").setLevel(logging.CRITICAL)
    queue = rq_queue(connect_jobs(settings), settings, provider, allowed_job(allowed))
    return JobWorker(queue, SYSTEM, on_killed, longest_run(settings), crash, settings.secrets)


class ForbiddenJob(Exception):
    """A job names a callable that is not on the list."""


class ListedJob(Job):
    """A job that runs only callables of its list, and leaves no key that stays for ever."""

    allowed: ClassVar[AllowList] = MappingProxyType({})  # the list; see `allowed_job`

    @property
    def func(self) -> Any:
        """The callable of the job's name. `ForbiddenJob`: it is not on the list."""
        name = str(self.func_name)
        if name not in self.allowed:
            raise ForbiddenJob(f"{name!r} is not on the list of jobs")
        return self.allowed[name]

    def send_webhooks(self, status: str | JobStatus, *, exc_string: str | None = None) -> None:
        """Send nothing, whatever the job names."""

    @property
    def should_retry(self) -> bool:
        """False: only a job whose process was killed is repeated; the next turn asks again."""
        return False

    def perform(self) -> Any:
        """Call it, and first let the job expire, from which RQ has just kept it.

        Without that, a job whose process is killed would stay for ever.
        """
        self.connection.expire(self.key, int(self.timeout or 0) + LIST_TTL_SECONDS)
        return super().perform()


_NO_CALLBACKS = MappingProxyType(
    dict.fromkeys(("success_callback", "failure_callback", "stopped_callback"))
)
"""What a job calls when it ends, whatever it names."""


def allowed_job(allowed: AllowList) -> type[Job]:
    return type("AllowedJob", (ListedJob,), {"allowed": allowed, **_NO_CALLBACKS})
