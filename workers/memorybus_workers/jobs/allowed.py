"""Lets RQ run only jobs whose names are on a list. A new kind of job needs an entry of the list.

With RQ's JSON serializer a worker still imports and runs any callable that a job names. Here a
job's name is looked up in a table, and callbacks and webhooks are not called at all: whoever can
write to Redis can only ask for a recall, a tool that only reads, or an inspection (which may erase
an owner's memories).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

from redis.client import Pipeline
from rq.job import Job, JobStatus
from rq.registry import StartedJobRegistry

LIST_TTL_SECONDS = 300
"""Seconds for which RQ's lists of a queue stay after their last use."""

AllowList = Mapping[str, Callable[..., Any]]


class ForbiddenJob(Exception):
    """A job names a callable that is not on the list."""


class ListedJob(Job):
    """A job that runs only callables of its list, and leaves no key that stays for ever.

    Attributes:
        allowed: the list; see `allowed_job`.
    """

    allowed: ClassVar[AllowList] = MappingProxyType({})

    @property
    def func(self) -> Any:
        """The callable of the job's name.

        Raises:
            ForbiddenJob: it is not on the list.
        """
        name = str(self.func_name)
        if name not in self.allowed:
            raise ForbiddenJob(f"{name!r} is not on the list of jobs")
        return self.allowed[name]

    @property
    def success_callback(self) -> None:
        """None, whatever the job names."""
        return

    @property
    def failure_callback(self) -> None:
        """None, whatever the job names."""
        return

    @property
    def stopped_callback(self) -> None:
        """None, whatever the job names."""
        return

    def send_webhooks(self, status: str | JobStatus, *, exc_string: str | None = None) -> None:
        """Send nothing, whatever the job names."""

    @property
    def should_retry(self) -> bool:
        """False: the next turn asks again anyway."""
        return False

    def perform(self) -> Any:
        """Call it, and first let the job expire, from which RQ has just kept it.

        Without that, a job whose process is killed would stay for ever.
        """
        self.connection.expire(self.key, int(self.timeout or 0) + LIST_TTL_SECONDS)
        return super().perform()

    def heartbeat(
        self,
        timestamp: datetime,
        ttl: int,
        pipeline: Pipeline | None = None,
        xx: bool = False,
    ) -> None:
        """Write RQ's sign of life, and let the job expire even if its process is killed now."""
        super().heartbeat(timestamp, ttl, pipeline=pipeline, xx=xx)
        connection = self.connection if pipeline is None else pipeline
        connection.expire(self.key, ttl)
        connection.expire(StartedJobRegistry.key_template.format(self.origin), LIST_TTL_SECONDS)


def allowed_job(allowed: AllowList) -> type[Job]:
    """Return a class of jobs that can run only `allowed`, by name."""
    return type("AllowedJob", (ListedJob,), {"allowed": allowed})
