"""Finds out which providers have waiting recalls, without loading RQ; idle workers use it."""

import math
from collections.abc import Sequence

from memorybus.config.settings import Settings
from memorybus.redis.connect import connect_jobs
from memorybus.redis.keys import Keys

JOB_TTL_SECONDS = 30
"""Seconds within which a job must begin; later it is dropped, since its session has gone on."""

_REPLY_TIMEOUT = 1.0
"""Seconds for each reply of Redis."""


def queue_name(namespace: str, provider: str) -> str:
    """Return the RQ queue of a provider's recalls."""
    return f"{namespace}-recall-{provider}"


def demand_keys(namespace: str, provider: str) -> tuple[str, ...]:
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


class RecallDemand:
    """Looks for providers whose recalls wait. Belongs to one thread."""

    def __init__(self, settings: Settings) -> None:
        """Connect at the first look."""
        self._namespace = settings.namespace
        self._jobs = connect_jobs(settings, timeout=_REPLY_TIMEOUT)

    def providers_with_work(self, providers: Sequence[str]) -> list[str]:
        """Return the providers for which a recall process has something to do.

        Raises:
            redis.RedisError, OSError: the Redis of the jobs is away.
        """
        keys = [key for name in providers for key in demand_keys(self._namespace, name)]
        if not keys or not self._jobs.exists(*keys):
            return []
        with self._jobs.pipeline(transaction=False) as pipe:
            for name in providers:
                pipe.exists(*demand_keys(self._namespace, name))
            return [name for name, there in zip(providers, pipe.execute(), strict=True) if there]

    def close(self) -> None:
        """Close the connection."""
        self._jobs.close()
