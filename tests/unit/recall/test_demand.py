"""The keys by which a worker sees that recalls wait: the prompts' own, and RQ's."""

from pathlib import Path

from memorybus.config.settings import Settings
from memorybus.recall.queue import request_keys, rq_queue
from memorybus.redis.keys import Keys
from redis import Redis


def test_the_keys_are_those_of_prompts_and_of_rq():
    """G9: a worker looks where prompts ask, and where RQ keeps what waits, was taken or began."""
    settings = Settings(data_dir=Path("/nowhere"))
    queue = rq_queue(Redis(), settings, "notes")
    prompts = Keys(settings.namespace).asks("notes")
    theirs = (queue.key, queue.intermediate_queue_key, queue.started_job_registry.key)
    assert request_keys(settings.namespace, "notes") == (prompts, *theirs)
