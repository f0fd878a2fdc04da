"""Asking for recalls: a request in Redis, and one RQ job per provider and session.

The bus names the job by string; the code is the workers'. The job's id is made of provider and
session, so that a second request while the first waits adds no job: the waiting one reads the
newest request when it runs.
"""

from typing import Any, cast

import msgspec
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue
from rq.exceptions import DuplicateJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from memorybus import scripts
from memorybus.asks import Ask
from memorybus.ids import text_digest
from memorybus.keys import Keys
from memorybus.links import connect_jobs, translated
from memorybus.recall import GENERATION, CarryAsk, Want, WarmAsk
from memorybus.roster import Roster
from memorybus.settings import Settings

JOB = "memorybus_workers.jobs.prefetch.warm"
"""The only callable the recall queues may run."""

_FAILURE_TTL = 60
_QUEUED_TTL = 120
_LONGEST = 1_000
"""Requests that may wait in a provider's queue; at the bound a new one is not made (G10)."""


def queue_name(namespace: str, provider: str) -> str:
    """Return the RQ queue of a provider's recalls."""
    return f"{namespace}-recall-{provider}"


class Asker:
    """Sends requests for recalls. Belongs to one thread.

    Args:
        redis: the log's Redis, which also holds requests and results.
        settings: see `Settings`.
    """

    def __init__(self, redis: Redis, settings: Settings) -> None:
        """Connect to the jobs' Redis at the first request."""
        self._redis = redis
        self._jobs = connect_jobs(settings)
        self._settings = settings
        self._keys = Keys(settings.namespace)

    def ask(self, ask: Ask) -> None:
        """Perform one request.

        Args:
            ask: a `WarmAsk` or a `CarryAsk`.

        Raises:
            LogUnavailable: Redis is away; ask again later.
        """
        try:
            if isinstance(ask, CarryAsk):
                self._carry(ask)
            elif isinstance(ask, WarmAsk):
                want = msgspec.structs.replace(ask.want, positions=self._heads(ask.partitions))
                self.want(ask.slot, want, self.recalling())
        except (RedisError, OSError) as error:
            raise translated(error, "recall") from error

    def _heads(self, partitions: tuple[int, ...]) -> dict[int, int]:
        """Return the dense numbers that the session's partitions have reached."""
        with self._redis.pipeline(transaction=False) as pipe:
            for partition in partitions:
                pipe.hget(self._keys.state(partition), "n")
            numbers = pipe.execute()
        return {p: int(n) for p, n in zip(partitions, numbers, strict=True) if n}

    def want(self, slot: str, want: Want, providers: list[str]) -> int:
        """Write a request and enqueue its jobs; return its generation.

        Raises:
            redis.RedisError: Redis is away.
        """
        ttl = round(self._settings.recall_ttl * 1000)
        call = scripts.want(self._keys, slot, msgspec.json.encode(want), ttl)
        generation = int(scripts.run(self._redis, call))
        for provider in providers:
            self._enqueue(slot, provider)
        return generation

    def recalling(self) -> list[str]:
        """Return the providers to ask: those that live workers serve, else those configured.

        While no worker lives, requests wait for one, up to a bound.
        """
        return Roster(self._redis, self._keys).recalling() or list(self._settings.providers)

    def _enqueue(self, slot: str, provider: str) -> None:
        queue = Queue(
            queue_name(self._settings.namespace, provider),
            connection=self._jobs,
            serializer=JSONSerializer,
        )
        if int(self._jobs.llen(queue.key)) >= _LONGEST:
            return  # nobody answers (G10)
        name = text_digest(f"{self._settings.namespace}\x00{slot}\x00{provider}")
        if not self._enqueued(f"{name}-a", queue, slot, provider):
            # It runs already and may have read the request before: one more behind it.
            self._enqueued(f"{name}-b", queue, slot, provider)

    def _enqueued(self, job_id: str, queue: Queue, slot: str, provider: str) -> bool:
        """Enqueue the job, or find it waiting; False if it runs already."""
        try:
            queue.enqueue(
                JOB,
                slot,
                provider,
                job_id=job_id,
                unique=True,
                ttl=_QUEUED_TTL,
                result_ttl=0,
                failure_ttl=_FAILURE_TTL,
                job_timeout=round(self._settings.recall_timeout),
            )
        except DuplicateJobError:
            return self._waits(job_id, queue)
        return True

    def _waits(self, job_id: str, queue: Queue) -> bool:
        status = self._jobs.hget(Job.key_for(job_id), "status")
        if status == JobStatus.FAILED.encode():
            self._jobs.delete(Job.key_for(job_id))
            queue.failed_job_registry.remove(job_id)
            return False
        return status == JobStatus.QUEUED.encode()

    def _carry(self, ask: CarryAsk) -> None:
        """Copy the warm results of the session before, unless the new one has its own."""
        new = self._keys.warm(ask.slot)
        fields = cast("dict[bytes, bytes]", self._redis.hgetall(self._keys.warm(ask.origin)))
        results: dict[Any, Any] = {
            name: body for name, body in fields.items() if not name.startswith(GENERATION)
        }
        if results and not self._redis.exists(new):
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.hset(new, mapping=results)
                pipe.pexpire(new, round(self._settings.recall_ttl * 1000))
                pipe.execute()
