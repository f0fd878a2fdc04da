"""A Redis and a worker with recall processes, for the tests of a module."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import redis
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys

from helpers.processes.processes import Spawn
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import worker

SURE: Any = {"recall_wait": 60.0, "recall_timeout": 60.0, "prefetch_deadline": 20.0}
"""However slow the machine, a recall has what it asks for, and a read finds it in time."""


class Served(NamedTuple):
    """What runs, and how it is reached."""

    settings: Settings
    server: RedisServer
    client: redis.Redis
    spawn: Spawn

    @property
    def keys(self) -> Keys:
        """The names of its keys."""
        return Keys(self.settings.namespace)


@contextmanager
def served(made: pytest.TempPathFactory, name: str, **options: Any) -> Iterator[Served]:
    """Run both while the block runs; fail if the worker has ended before."""
    directory = made.mktemp(name)
    server = RedisServer()
    server.start()
    settings = Settings(url=server.url, namespace=name, data_dir=directory, **SURE | options)
    spawner = Spawn(directory, f"{name}-{os.getpid()}", directory)
    try:
        child = worker(spawner, settings, jobs=1)
        yield Served(settings, server, server.client(), spawner)
        assert child.alive, child.output()
    finally:
        spawner.end_all()
        server.remove()
