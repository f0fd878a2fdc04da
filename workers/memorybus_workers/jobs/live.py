"""The instances that a recall process opens: the one that serves its provider, and copies of it."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MissingProvider
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, Instances, Live
from memorybus.testing import CrashPoint, no_crash
from memorybus_providers.base import MemoryProvider
from redis import Redis

from memorybus_workers.calls.allowance import SharedSpending
from memorybus_workers.hosting.instances import make_copy, make_instance


class LiveInstances:
    """Instances of one provider, the live one kept open (G8). Belongs to one thread."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        redis: Redis,
        provider: str,
        crash: CrashPoint = no_crash,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._provider = provider
        self._crash = crash
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._instances = Instances(redis, self._keys)
        self._spend = SharedSpending(redis, self._keys, provider)
        self._opened: dict[str, MemoryProvider] = {}

    def find_serving(self, provider: str) -> str:
        body: Any = self._redis.hget(self._keys.live, provider)
        return live_instance(provider, body)

    def open_instance(self, name: str) -> MemoryProvider:
        if name not in self._opened:
            provider = self._make(name)
            self.close_all()
            self._opened[name] = provider  # first, so that `close` also closes a half open one
            provider.open()
        return self._opened[name]

    @contextmanager
    def visit(self, name: str) -> Iterator[MemoryProvider]:
        opened = self._opened.get(name)
        if opened is not None:
            yield opened
            return
        provider = self._make(name)
        try:
            provider.open()
            yield provider
        finally:
            with contextlib.suppress(Exception):
                provider.shutdown()

    def close(self, name: str) -> None:
        """Close an instance; the next call opens another."""
        provider = self._opened.pop(name, None)
        if provider is not None:
            with contextlib.suppress(Exception):
                provider.shutdown()

    def close_all(self) -> None:
        for name in list(self._opened):
            self.close(name)

    def _make(self, name: str) -> MemoryProvider:
        if name == self._provider:
            return make_instance(self._settings, name, self._clock, self._crash, spend=self._spend)
        copy = self._find_copy(name)
        return make_copy(
            self._settings,
            name,
            self._provider,
            self._clock,
            self._crash,
            options=copy.options,
            spend=self._spend,
        )

    def _find_copy(self, name: str) -> Instance:
        instance = self._instances.get(name)
        strange = instance is None or instance.provider != self._provider or instance.dropped
        if instance is None or strange or name in self._settings.providers:
            raise MissingProvider(f"{name[:40]!r} is no instance of {self._provider}")
        return instance


def live_instance(provider: str, body: bytes | None) -> str:
    """Return the instance that an entry of ``{ns}:live`` names; without an entry, the provider."""
    return provider if body is None else msgspec.json.decode(body, type=prepared(Live)).instance
