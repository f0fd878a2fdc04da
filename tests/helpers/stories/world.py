"""A bus on the shared server with what runs on it: most stories begin with one."""

import json
from typing import Any, NamedTuple

import redis
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys

from helpers.processes.commands import Ran, run_command
from helpers.processes.processes import Child, Spawn
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
