"""Reads the figures of each provider's recall jobs; changes nothing."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

import msgspec
from redis import Redis
from rq.job import Job

from memorybus.config.settings import Settings
from memorybus.recall import counts
from memorybus.recall.counts import PromptCounts
from memorybus.recall.demand import queue_name
from memorybus.recall.health import RecallHealth, RecentRecalls
from memorybus.redis.keys import Keys
from memorybus.text.display import iso


class JobsStatus(msgspec.Struct, frozen=True):
    """A provider's recall jobs; times are ISO 8601, UTC.

    Attributes:
        provider: the provider.
        queue: the name of its RQ queue.
        queued: how many jobs wait and may still begin.
        started: how many jobs run.
        failed: how many recalls failed since the last day without a failure.
        oldest_at: when the oldest waiting job was enqueued, or None.
        failing: how many recalls failed in a row; 0 after a success.
        skipped: how many recalls were not made because of a pause or the queue's bound.
        paused: whether the provider is not asked now because several recalls failed in a row.
        failed_at: when the last recall failed, or None.
        error: the last failure in one bounded line, credentials masked, or ""; hostile text.
        prompts: how prompts were answered since the last day without a prompt.
    """

    provider: str
    queue: str
    queued: int
    started: int
    failed: int
    oldest_at: str | None
    failing: int
    skipped: int
    paused: bool
    failed_at: str | None
    error: str
    prompts: PromptCounts = PromptCounts()


def read_jobs(
    redis: Redis, jobs: Redis, settings: Settings, providers: Sequence[str]
) -> list[JobsStatus]:
    """Read the figures of all queues.

    RQ's keys are read directly, because counting through its registries would change them.

    Args:
        redis: the log's Redis.
        jobs: the jobs' Redis.
        settings: see `Settings`.
        providers: the providers whose queues to read.

    Raises:
        redis.RedisError: one of the two servers is away.
    """
    keys = Keys(settings.namespace)
    health = RecallHealth(redis, keys).read(providers)
    prompts = counts.read(redis, keys, providers)
    with jobs.pipeline(transaction=False) as pipe:
        for queue in (queue_name(settings.namespace, name) for name in providers):
            pipe.lrange(f"rq:queue:{queue}", 0, -1)
            pipe.zcard(f"rq:wip:{queue}")
        replies = iter(pipe.execute())
    return [
        _jobs_status(
            settings.namespace,
            name,
            _enqueued_times(jobs, next(replies)),
            next(replies),
            health[name],
            prompts[name],
        )
        for name in providers
    ]


def _enqueued_times(jobs: Redis, ids: Sequence[bytes]) -> list[int]:
    """Return when each waiting job was enqueued (milliseconds); expired jobs are left out."""
    with jobs.pipeline(transaction=False) as pipe:
        for job_id in ids:
            pipe.hget(Job.key_for(job_id.decode()), "enqueued_at")
        found = cast("list[bytes | None]", pipe.execute())
    return [_ms(at) for at in found if at is not None]


def _ms(at: bytes) -> int:
    """Return a time that RQ wrote, in milliseconds; 0 if another program's job holds no time."""
    try:
        return round(datetime.fromisoformat(at.decode()).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _jobs_status(
    namespace: str,
    provider: str,
    asked_at: list[int],
    started: int,
    health: RecentRecalls,
    prompts: PromptCounts,
) -> JobsStatus:
    return JobsStatus(
        provider=provider,
        queue=queue_name(namespace, provider),
        queued=len(asked_at),
        started=int(started),
        failed=health.failed,
        oldest_at=iso(min(asked_at, default=None)),
        failing=health.failing,
        skipped=health.skipped,
        paused=health.paused,
        failed_at=iso(health.failed_at),
        error=health.error,
        prompts=prompts,
    )
