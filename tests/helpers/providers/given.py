"""Instances that a test has made, for what asks those of a recall process."""

from collections.abc import Callable
from typing import Any

import redis
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus_workers.jobs.live import LiveInstances


class GivenInstances(LiveInstances):
    """Opens by `opened`, which gets an instance's name, and closes nothing."""

    def __init__(
        self, settings: Settings, client: redis.Redis, opened: Callable[[str], Any]
    ) -> None:
        super().__init__(settings, SYSTEM, client, "any")
        self._give = opened

    def open_instance(self, name: str) -> Any:
        """Return what the test gives for this name."""
        return self._give(name)
