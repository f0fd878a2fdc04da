"""Does the curator's scheduled runs, in a process that ends when none waits."""

import socket

from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.redis.connect import connect_jobs
from memorybus.testing import crash_points
from rq import Queue
from rq.serializers import JSONSerializer

from memorybus_workers.curating.curator import Curator
from memorybus_workers.curating.schedule import JOB, queue_name
from memorybus_workers.jobs.worker import JobWorker, allowed_job

_LONGEST_SECONDS = 600  # seconds after which a run is ended (G10); the next one decides anew


_JOB_LIFE_SECONDS = 3_600
"""Seconds within which a job must begin; the next one is enqueued when it is due."""


def run_waiting(settings: Settings, *, due: bool) -> None:
    """Do the runs that wait; a run that was killed is not repeated."""
    crash = crash_points(settings.crash_at)

    def run() -> None:
        curator = Curator(settings, SYSTEM, crash=crash)
        try:
            curator.run(f"worker on {socket.gethostname()}")
        finally:
            curator.close()

    allowed = {JOB: run}
    queue = Queue(
        queue_name(settings.namespace),
        connection=connect_jobs(settings),
        serializer=JSONSerializer,
        job_class=allowed_job(allowed),
    )
    if due:
        queue.enqueue(JOB, ttl=_JOB_LIFE_SECONDS, result_ttl=0, failure_ttl=_JOB_LIFE_SECONDS)
        queue.connection.expire(queue.key, _JOB_LIFE_SECONDS)
    worker = JobWorker(queue, SYSTEM, lambda: None, _LONGEST_SECONDS, crash, settings.secrets)
    worker.work(burst=True, with_scheduler=False, logging_level="CRITICAL")
