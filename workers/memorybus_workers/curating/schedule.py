"""Lets the curator run when it is due: a worker starts a process, which does it as an RQ job.

Of all workers, one starts the process that enqueues the job. Any of them starts one for a job that
waits, so the job survives its worker; the curator's lease admits one run. Workers do not load RQ.
"""

from memorybus.clock import Clock
from memorybus.config.settings import Settings, to_environ
from memorybus.processes.child import ChildProcess
from memorybus.processes.commands import module_command
from memorybus.redis.connect import connect_jobs
from memorybus.redis.keys import Keys
from memorybus.registry.curation import CuratorRuns
from redis import Redis

JOB = "memorybus_workers.jobs.curator.run"
"""The only callable that the curator's queue may run."""

_LOOK_SECONDS = 5.0
"""Seconds between two looks."""

_END_SECONDS = 2.0


def queue_name(namespace: str) -> str:
    """Return the RQ queue of the curator's runs."""
    return f"{namespace}-curator"


class CuratorSchedule:
    """Starts the process that does the curator's runs. For one thread.

    Args:
        redis: the log's Redis.
    """

    def __init__(self, settings: Settings, redis: Redis, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._runs = CuratorRuns(redis, Keys(settings.namespace))
        self._jobs = connect_jobs(settings)
        self._child: ChildProcess | None = None
        self._look_at = 0.0

    def poll(self) -> None:
        """Start the process if a run is due, or if one waits.

        Raises:
            redis.RedisError, LogError, OSError: Redis is away, or the process cannot be started.
        """
        if not self._settings.curator_every or self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + _LOOK_SECONDS
        if self._child is not None and self._child.listen() is not None:
            self._child.close()
            self._child = None
        if self._child is not None:
            return
        if self._runs.take_due(round(self._settings.curator_every * 1000)):
            self._start("--due")
        elif self._jobs.llen(f"rq:queue:{queue_name(self._settings.namespace)}"):
            self._start()

    def stop(self) -> None:
        """End the process, if it runs; the next run does what is left."""
        if self._child is not None:
            self._child.end()
        self._jobs.close()

    def _start(self, *words: str) -> None:
        command = module_command("memorybus_workers", "curator", *words)
        environ = to_environ(self._settings)
        self._child = ChildProcess(command, environ, _END_SECONDS, quiet=True)
