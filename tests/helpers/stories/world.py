"""A bus on the shared server with what runs on it: most stories begin with one."""

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys

from helpers.making import SHORT_TIMINGS
from helpers.processes.commands import Ran, run_command
from helpers.processes.processes import Child, Spawn
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import environ, wait_applied, worker


class World(NamedTuple):
    """Made by the fixture `make_world`, which takes settings."""

    settings: Settings
    redis: redis.Redis
    spawn: Spawn

    @property
    def keys(self) -> Keys:
        """The names of its keys."""
        return Keys(self.settings.namespace)

    def worker(self, *, jobs: int = 1) -> Child:
        """Start a worker process with so many recall processes, and wait until it is ready."""
        return worker(self.spawn, self.settings, jobs=jobs)

    def bus(self) -> MemoryBus:
        """Connect an agent."""
        return MemoryBus.connect(self.settings)

    def wait_applied(self) -> None:
        """Wait until every provider has passed everything in the log."""
        for name in self.settings.providers:
            wait_applied(self.redis, self.settings, name)

    def run(self, *words: str) -> Ran:
        """Run a command to its end, with all of these settings."""
        return run_command(environ(self.settings), *words)

    def result(self, *words: str, code: int = 0) -> Any:
        """Return what a command prints with ``--json``; fail if it ends with another code."""
        done = self.run(*words, "--json")
        assert done.returncode == code, done.output
        return json.loads(done.stdout) if done.stdout else {}


@contextmanager
def standing_world(logs: Path, **changed: Any) -> Iterator[World]:
    """Run a bus on a server of its own, for tests of a module that only look at it.

    Args:
        logs: where its processes write.
        changed: settings.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="mb-"))
    server, spawn = RedisServer(), Spawn(logs, uuid.uuid4().hex, data_dir)
    try:
        server.start()
        settings = Settings(url=server.url, data_dir=data_dir, **{**SHORT_TIMINGS, **changed})
        with server.client() as client:
            yield World(settings, client, spawn)
    finally:
        spawn.end_all()
        server.remove()
        shutil.rmtree(data_dir, ignore_errors=True)
