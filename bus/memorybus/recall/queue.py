"""The RQ queue of one provider's recalls: bounded in number and in time (G10).

A job's id is made of provider and session, so that a second request while the first waits adds no
job: the waiting one reads the newest request when it runs. Every key that is written here expires.
RQ is loaded when a job is added or taken: idle workers only look whether there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from redis import Redis

from memorybus.config.settings import Settings
from memorybus.ids import text_digest
from memorybus.redis.connect import TIMEOUT, connect_jobs
from memorybus.redis.keys import Keys

if TYPE_CHECKING:
    from rq import Queue
    from rq.job import Job

JOB = "memorybus_workers.jobs.prefetch.warm"  # the only callable the recall queues may run
MAX_WAITING_JOBS = 1_000
"""How many jobs may wait in a provider's queue; beyond it no more are added (G10)."""

JOB_TTL_SECONDS = 30
"""Seconds within which a job must begin; later it is dropped, since its session has gone on."""

_REPLY_TIMEOUT = 1.0  # seconds for each reply of Redis
_FAILURE_TTL = 10  # seconds for which RQ's own tools show a failed job (its default is a year)
_MAX_REPEATS = 2
"""How often a job whose process was killed runs again (G10). The job itself may kill its process;
but if workers are replaced while one of them dies, an innocent job can be lost twice."""


def queue_name(namespace: str, provider: str) -> str:
    return f"{namespace}-recall-{provider}"


def request_keys(namespace: str, provider: str) -> tuple[str, ...]:
    """Return the key of prompts' questions, and RQ's keys of jobs that wait, were taken, or run.

    Each key exists only while it holds something. The last two may hold jobs that a killed process
    left; only a recall process finds these.
    """
    name = queue_name(namespace, provider)
    asks = Keys(namespace).asks(provider)
    return asks, f"rq:queue:{name}", f"rq:queue:{name}:intermediate", f"rq:wip:{name}"


def longest_run(settings: Settings) -> int:
    """Return the whole seconds a job may run: RQ has no fractions, and 0 means no limit."""
    return max(1, math.ceil(settings.recall_timeout))


def rq_queue(
    jobs: Redis, settings: Settings, provider: str, job_class: type[Job] | None = None
) -> Queue:
    """Return a provider's RQ queue, whose jobs have JSON arguments."""
    from rq import Queue
    from rq.serializers import JSONSerializer

    name = queue_name(settings.namespace, provider)
    return Queue(name, connection=jobs, serializer=JSONSerializer, job_class=job_class)


def enqueue_call(
    settings: Settings,
    provider: str,
    job: str,
    body: str,
    job_id: str,
    *,
    timeout: float,
    life: int = JOB_TTL_SECONDS,
    at_front: bool = False,
) -> str:
    """Enqueue a job that is awaited for `timeout` seconds; return why it will not run, or ""."""
    from rq import Retry

    with closing(connect_jobs(settings, timeout=min(TIMEOUT, timeout))) as jobs:
        queue = rq_queue(jobs, settings, provider)
        if int(jobs.llen(queue.key)) >= MAX_WAITING_JOBS:
            return f"too many calls wait for {provider}"
        queue.enqueue(
            job, body, job_id=job_id, at_front=at_front, ttl=life, result_ttl=0,
            failure_ttl=_FAILURE_TTL, job_timeout=longest_run(settings),
            retry=Retry(_MAX_REPEATS, enqueue_at_front=True),
        )  # fmt: skip
        jobs.expire(queue.key, JOB_TTL_SECONDS)
    return ""


class RecallQueue:
    """Adds jobs to a queue. Belongs to one thread; raises what redis-py raises."""

    def __init__(self, jobs: Redis, settings: Settings, provider: str) -> None:
        self._jobs = jobs
        self._settings = settings
        self._provider = provider
        self._queue = rq_queue(jobs, settings, provider)

    def put(self, slot: str) -> bool:
        """Let a job wait that has not read the newest request; False if the queue is full."""
        if int(self._jobs.llen(self._queue.key)) >= MAX_WAITING_JOBS:
            return False
        name = text_digest(f"{self._settings.namespace}\x00{slot}\x00{self._provider}")
        if not self._ensure_waiting(f"{name}-a", slot):
            # That job runs already, and may have read an older request: add one more behind it.
            self._ensure_waiting(f"{name}-b", slot)
        self._jobs.expire(self._queue.key, JOB_TTL_SECONDS)  # it expires with the last of its jobs
        return True

    def _ensure_waiting(self, job_id: str, slot: str) -> bool:
        """Add the job unless it waits already; return False if it runs."""
        from rq.exceptions import DuplicateJobError
        from rq.job import Job, JobStatus

        try:
            self._add(job_id, slot)
        except DuplicateJobError:
            status = self._jobs.hget(Job.key_for(job_id), "status")
            if status != JobStatus.FAILED.encode():
                return status == JobStatus.QUEUED.encode()
            # RQ still shows the failed job: without it the session can ask again.
            self._jobs.delete(Job.key_for(job_id))
            self._queue.failed_job_registry.remove(job_id)
            return self._ensure_waiting(job_id, slot)
        return True

    def _add(self, job_id: str, slot: str) -> None:
        from rq import Retry

        self._queue.enqueue(
            JOB,
            slot,
            self._provider,
            job_id=job_id,
            unique=True,
            ttl=JOB_TTL_SECONDS,
            result_ttl=0,
            failure_ttl=_FAILURE_TTL,
            job_timeout=longest_run(self._settings),
            retry=Retry(_MAX_REPEATS, enqueue_at_front=True),
        )


class RecallDemand:
    """Looks for providers whose recalls wait. Belongs to one thread."""

    def __init__(self, settings: Settings) -> None:
        self._namespace = settings.namespace
        self._jobs = connect_jobs(settings, timeout=_REPLY_TIMEOUT)

    def providers_with_work(self, providers: Sequence[str]) -> list[str]:
        keys = [key for name in providers for key in request_keys(self._namespace, name)]
        if not keys or not self._jobs.exists(*keys):
            return []
        with self._jobs.pipeline(transaction=False) as pipe:
            for name in providers:
                pipe.exists(*request_keys(self._namespace, name))
            return [name for name, there in zip(providers, pipe.execute(), strict=True) if there]

    def close(self) -> None:
        self._jobs.close()
