"""Finds jobs whose process was killed, removes them, and enqueues them again.

RQ cleans up such jobs only after minutes, by wall clocks, and their ids stay in use until then.
Here every process looks at its own queue each second. A running job has a sign that changes (its
score in RQ's registry of started jobs); a job that was taken and has not begun is in the
intermediate list for moments only. A job whose sign is the same at `LOST_LOOKS` looks is a dead
process's. So no two clocks are compared, and an outage of Redis, in which nobody can give a sign,
is one look.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, cast

from memorybus.text.redact import describe_error
from redis import Redis
from rq import Queue
from rq.exceptions import DeserializationError, DuplicateJobError
from rq.executions import ExecutionRegistry
from rq.job import Job

_log = logging.getLogger("memorybus")
LOST_LOOKS = 4
"""A job counts as lost once its sign is the same at so many looks, which are a second apart."""

MAX_REPEATS = 2
"""How often a lost job is enqueued again (G10). The job itself may kill its process; but if workers
are replaced while one of them dies, an innocent job can be lost twice."""

UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    DeserializationError,
)
"""Errors that RQ raises for an unreadable job, which any program may have written to Redis."""


class Sign(NamedTuple):
    """A job that is running or was taken."""

    where: str  # the Redis key with the sign
    name: bytes  # the sign's name there: any bytes if another program wrote it
    value: float  # what a living process changes


def count_looks(before: Mapping[Sign, int], signs: Iterable[Sign]) -> dict[Sign, int]:
    """Return at how many looks in a row, with this one, each sign has been there unchanged."""
    return {sign: before.get(sign, 0) + 1 for sign in signs}


class LostJobs:
    """Cleans up one queue, between the jobs of the process that runs them."""

    def __init__(self, queue: Queue, again: Collection[str], on_killed: Callable[[], None]) -> None:
        self._queue = queue
        self._redis: Redis = queue.connection
        self._again = again
        self._on_killed = on_killed
        self._started = queue.started_job_registry.key
        self._taken = queue.intermediate_queue_key
        self._looks: Mapping[Sign, int] = {}

    def recover(self) -> None:
        """Remove lost jobs, and enqueue those that may run again; raises what redis-py raises."""
        self._drop_expired()
        self._looks = count_looks(self._looks, self._signs())
        for sign in [sign for sign, looks in self._looks.items() if looks >= LOST_LOOKS]:
            if self._claim(sign):
                self._free(_job_id(sign.name))
                if sign.where == self._started:
                    self._on_killed()

    def _drop_expired(self) -> None:
        """Remove the ids of jobs that had expired when they were taken; there may be many."""
        ids = cast("list[bytes]", self._redis.lrange(self._taken, 0, -1))
        with self._redis.pipeline(transaction=False) as pipe:
            for job_id in ids:
                pipe.exists(Job.key_for(_job_id(job_id)))
            there = pipe.execute()
            for job_id, exists in zip(ids, there, strict=True):
                if not exists:
                    pipe.lrem(self._taken, 1, cast("str", job_id))
            pipe.execute()

    def _signs(self) -> list[Sign]:
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.zrange(self._started, 0, -1, withscores=True)
            pipe.lrange(self._taken, 0, -1)
            started, taken = pipe.execute()
        begun = {name.partition(b":")[0] for name, _ in started}
        return [
            *(Sign(self._started, name, float(score)) for name, score in started),
            *(Sign(self._taken, name, 0.0) for name in set(taken) - begun),
        ]

    def _claim(self, sign: Sign) -> bool:
        """Remove a lost sign; if several processes do this at the same time, only one gets True."""
        if sign.where == self._started:
            return bool(self._redis.zrem(sign.where, sign.name))
        return bool(self._redis.lrem(sign.where, 1, cast("str", sign.name)))

    def _free(self, job_id: str) -> None:
        """Delete a job to free its id, and enqueue it again unless it was lost too often."""
        job = self._find_repeatable(job_id)
        executions = ExecutionRegistry(job_id, self._redis).key
        self._redis.delete(Job.key_for(job_id), executions)
        if job is None:
            return
        losses = _count_losses(job) + 1
        if losses <= MAX_REPEATS:
            self._ask_again(job, losses)
        else:
            _log.warning("%s: a job that was lost %d times is given up", job.origin, losses)

    def _find_repeatable(self, job_id: str) -> Job | None:
        """Return a job that may run again; None if it may not, or cannot be read."""
        try:
            job = self._queue.fetch_job(job_id)
            may = job is not None and job.func_name in self._again
        except UNREADABLE as error:
            _log.warning(
                "%s: an entry that is no job is dropped: %s", self._queue.key, describe_error(error)
            )
            return None
        return job if may else None

    def _ask_again(self, job: Job, losses: int) -> None:
        try:
            self._queue.enqueue_call(
                str(job.func_name),
                args=job.args,
                result_ttl=job.result_ttl,
                ttl=job.ttl,
                failure_ttl=job.failure_ttl,
                job_id=job.id,
                meta={"losses": losses},
                at_front=True,
                unique=True,
            )
        except DuplicateJobError:
            return  # the session has asked in the meantime


def _count_losses(job: Job) -> int:
    """Return how often a job was lost before; `MAX_REPEATS` if the number cannot be read."""
    losses = job.meta.get("losses", 0) if isinstance(job.meta, dict) else MAX_REPEATS
    return losses if isinstance(losses, int) and losses >= 0 else MAX_REPEATS


def _job_id(sign: bytes) -> str:
    """Return the job's id in a sign's name; the ids of our jobs are always texts."""
    return sign.partition(b":")[0].decode(errors="replace")
