"""A process that runs recall jobs with RQ: JSON arguments, and only callables on its list.

RQ's JSON serializer still imports and runs whatever callable a job names. Here a job's name is
looked up in a table, and callbacks are not run at all: who can write to Redis can ask for a
recall, nothing else.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from memorybus.clock import SYSTEM
from memorybus.links import connect_jobs, connect_redis
from memorybus.recall_jobs import JOB, queue_name
from memorybus.settings import Settings
from rq import Queue, SimpleWorker
from rq.job import Job
from rq.serializers import JSONSerializer

from memorybus_workers.instances import Instances
from memorybus_workers.jobs.prefetch import Recaller

_WORKER_TTL = 30
_MAINTENANCE = 30

AllowList = Mapping[str, Callable[..., Any]]


class ForbiddenJob(Exception):
    """A job names a callable that is not on the list."""


def allowed_job(allowed: AllowList) -> type[Job]:
    """Return a Job class that can run nothing but `allowed`, by name."""

    class AllowedJob(Job):
        @property
        def func(self) -> Any:
            name = str(self.func_name)
            if name not in allowed:
                raise ForbiddenJob(f"{name!r} is not on the list of recall jobs")
            return allowed[name]

        @property
        def success_callback(self) -> None:
            return None

        @property
        def failure_callback(self) -> None:
            return None

        @property
        def stopped_callback(self) -> None:
            return None

    return AllowedJob


def run_jobs(settings: Settings, providers: tuple[str, ...]) -> None:
    """Work off the recall queues of some providers until SIGTERM or SIGINT."""
    logging.getLogger("rq").setLevel(logging.WARNING)
    instances = Instances(settings, SYSTEM, providers)
    recaller = Recaller(
        connect_redis(settings), settings, SYSTEM, instances.opened, instances.forget
    )
    worker = recall_worker(settings, providers, {JOB: recaller.warm})
    try:
        worker.work(with_scheduler=False, logging_level="WARNING")
    finally:
        instances.shutdown()


def recall_worker(
    settings: Settings, providers: tuple[str, ...], allowed: AllowList
) -> SimpleWorker:
    """Return the RQ worker of some providers' queues."""
    connection = connect_jobs(settings, timeout=_WORKER_TTL * 2)
    job_class = allowed_job(allowed)
    queues = [
        Queue(
            queue_name(settings.namespace, provider),
            connection=connection,
            serializer=JSONSerializer,
            job_class=job_class,
        )
        for provider in providers
    ]
    return SimpleWorker(
        queues,
        connection=connection,
        serializer=JSONSerializer,
        job_class=job_class,
        default_worker_ttl=_WORKER_TTL,
        maintenance_interval=_MAINTENANCE,
    )
