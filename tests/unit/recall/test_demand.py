"""The keys by which a worker sees that recall jobs wait are RQ's own."""

from pathlib import Path

from memorybus.config.settings import Settings
from memorybus.recall.demand import job_keys
from memorybus.recall.queue import rq_queue
from redis import Redis


def test_the_keys_are_those_of_rq() -> None:
    """G9: what RQ keeps of waiting, taken and begun jobs is where a worker looks for it."""
    settings = Settings(data_dir=Path("/nowhere"))
    queue = rq_queue(Redis(), settings, "notes")
    theirs = (queue.key, queue.intermediate_queue_key, queue.started_job_registry.key)
    assert job_keys(settings.namespace, "notes") == theirs
