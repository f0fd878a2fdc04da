"""A recall process whose loop ends although nobody told it to."""

import signal
from collections.abc import Iterator
from typing import Any, cast

import pytest
import redis
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.recall.queue import rq_queue
from memorybus.testing import no_crash
from memorybus_workers.jobs.worker import JobsEnded, JobWorker
from redis.exceptions import RedisError


class Looks:
    """Looks after lost jobs, and finds something else."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self._looks = 0

    def recover(self) -> None:
        """Find the error, at the second time."""
        self._looks += 1
        if self._looks < 2:
            return
        if self._error is None:
            signal.raise_signal(signal.SIGTERM)
        else:
            raise self._error


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Take back the signals that RQ listens to."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def job_worker(client: redis.Redis, settings: Settings, looks: Looks) -> JobWorker:
    """Return a worker of a queue of its own."""
    worker: Any = JobWorker(rq_queue(client, settings, "rec"), SYSTEM, bool, 5, no_crash)
    worker.run_maintenance_tasks = looks.recover
    return cast("JobWorker", worker)


def test_an_unexpected_end_is_told(redis_client, settings):
    """G9: a recall process that ends of an error says which, without credentials."""
    looks = Looks(ZeroDivisionError("api_key=hunter2-hunter2"))
    with pytest.raises(JobsEnded, match=r"-recall-rec: .*ZeroDivisionError: api_key=[*]") as told:
        job_worker(redis_client, settings, looks).work_until_stopped()
    assert "hunter2" not in str(told.value)


def test_an_error_of_redis_is_told_as_such(redis_client, settings):
    """G9: what Redis refuses ends the process as what it is, for the reason that people know."""
    looks = Looks(redis.exceptions.ResponseError("WRONGTYPE"))
    with pytest.raises(RedisError, match="WRONGTYPE"):
        job_worker(redis_client, settings, looks).work_until_stopped()


def test_an_end_that_was_told_is_no_failure(redis_client, settings):
    """G9: SIGTERM ends a recall process without a complaint."""
    work: Any = job_worker(redis_client, settings, Looks())
    work.work_until_stopped()
