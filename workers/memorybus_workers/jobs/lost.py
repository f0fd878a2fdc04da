"""Finds jobs that a killed process left by their silence, removes them, and enqueues them again.

RQ cleans up such jobs only after minutes, by wall clocks, and their ids stay in use until then.
Here every process looks at its own queue each second. A running job has a sign that changes (its
score in RQ's registry of started jobs); a job that was taken and has not begun is in the
intermediate list for moments only. A sign that stays the same for `SILENCE_SECONDS` and at
`MIN_LOOKS` looks belongs to a dead process. Only the clock of the process that looks is used, so
two clocks are never compared; and an outage of Redis, in which nobody can give a sign, counts as
one look.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, cast

from memorybus.clock import Clock
from memorybus.text.redact import describe_error
from redis import Redis
from rq import Queue
from rq.exceptions import DeserializationError, DuplicateJobError
from rq.executions import ExecutionRegistry
from rq.job import Job

_log = logging.getLogger("memorybus")

SILENCE_SECONDS = 3.0
"""Seconds after which a job whose sign does not change counts as lost."""

MIN_LOOKS = 4
"""At so many looks, including the first one, the sign must have been the same."""

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

Sign = tuple[str, bytes]
"""The Redis key with a sign, and the sign's name there: any bytes if another program wrote it."""


class SeenSign(NamedTuple):
    """A sign's value, since when it has it (monotonic seconds), and how many looks saw it."""

    value: float
    since: float
    looks: int


class Silence:
    """Finds signs that have not changed for long. Pure: the time is an argument."""

    def __init__(self) -> None:
        """Have seen nothing yet."""
        self._seen: dict[Sign, SeenSign] = {}

    def observe(self, signs: Mapping[Sign, float], now: float) -> list[Sign]:
        """Compare signs with those that were seen before.

        Args:
            signs: the present signs and their values.
            now: monotonic seconds.

        Returns:
            The signs that have not changed for at least `SILENCE_SECONDS` and `MIN_LOOKS` looks.
        """
        before, self._seen = self._seen, {}
        for sign, value in signs.items():
            was = before.get(sign)
            if was is None or was.value != value:
                was = SeenSign(value, now, 0)
            self._seen[sign] = was._replace(looks=was.looks + 1)
        return [
            sign
            for sign, seen in self._seen.items()
            if seen.looks >= MIN_LOOKS and now - seen.since >= SILENCE_SECONDS
        ]


class LostJobs:
    """Cleans up one queue, between the jobs of the process that runs them.

    Args:
        queue: the queue.
        clock: time.
        again: names of the callables whose jobs may run again.
        on_killed: called for each lost job that had begun: its process was killed, or hung.
    """

    def __init__(
        self, queue: Queue, clock: Clock, again: Collection[str], on_killed: Callable[[], None]
    ) -> None:
        """Have seen nothing yet."""
        self._queue = queue
        self._redis: Redis = queue.connection
        self._clock = clock
        self._again = again
        self._on_killed = on_killed
        self._started = queue.started_job_registry.key
        self._taken = queue.intermediate_queue_key
        self._silence = Silence()

    def recover(self) -> None:
        """Remove lost jobs, and enqueue those that may run again; raises what redis-py raises."""
        self._drop_expired()
        for where, name in self._silence.observe(self._signs(), self._clock.monotonic()):
            begun = where == self._started
            if self._claim(where, name):
                self._free(_job_id(name))
                if begun:
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

    def _signs(self) -> dict[Sign, float]:
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.zrange(self._started, 0, -1, withscores=True)
            pipe.lrange(self._taken, 0, -1)
            started, taken = pipe.execute()
        signs = {(self._started, name): float(score) for name, score in started}
        begun = {name.partition(b":")[0] for _, name in signs}
        return signs | {(self._taken, name): 0.0 for name in set(taken) - begun}

    def _claim(self, where: str, name: bytes) -> bool:
        """Remove a lost sign; if several processes do this at the same time, only one gets True."""
        if where == self._started:
            return bool(self._redis.zrem(where, name))
        return bool(self._redis.lrem(where, 1, cast("str", name)))

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
