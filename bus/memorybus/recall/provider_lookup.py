"""Looks up which providers answer recalls now, at most once a second."""

import threading

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.recall.breaker import RecallHealth
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

_LOOK_EVERY = 1.0
"""Seconds between two look-ups; heartbeats of workers come no more often."""


class RecallProviders(msgspec.Struct, frozen=True):
    """The providers, by what they can answer now.

    Attributes:
        known: all registered providers.
        recalling: the providers whose recalls a live worker answers.
        asked: the providers that are asked ahead: those of `recalling`, or, if no worker is alive,
            the configured ones; their requests then wait for a worker.
        prompting: the providers that add to system prompts.
        paused: the providers that `recalling`, `asked` and `prompting` leave out, because several
            of their recalls failed.
    """

    known: frozenset[str] = frozenset()
    recalling: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    prompting: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()


class RecallProviderLookup:
    """Looks up who answers. Thread-safe; raises what redis-py raises, and `LogError`.

    Attributes:
        latest: the result of the last look-up.
    """

    def __init__(self, redis: Redis, settings: Settings, clock: Clock) -> None:
        """Prepare; the first call of `current` looks."""
        self.latest = RecallProviders()
        self._roster = Roster(redis, Keys(settings.namespace))
        self._health = RecallHealth(redis, Keys(settings.namespace))
        self._configured = settings.providers
        self._clock = clock
        self._look_at = 0.0
        self._lock = threading.Lock()

    def current(self) -> RecallProviders:
        """Return who answers; the answer is at most a second old."""
        with self._lock:
            if self._clock.monotonic() >= self._look_at:
                self.latest = self._look_up()
                self._look_at = self._clock.monotonic() + _LOOK_EVERY
            return self.latest

    def _look_up(self) -> RecallProviders:
        served = self._roster.answering_providers()
        recalling = [name for name, info in served.items() if info.recall]
        asked = recalling or list(self._configured)
        prompting = [name for name, info in served.items() if info.prompts]
        health = self._health.read(list(dict.fromkeys([*asked, *prompting])))

        def able(names: list[str]) -> tuple[str, ...]:
            return tuple(name for name in names if not health[name].paused)

        return RecallProviders(
            known=frozenset(self._roster.providers()),
            recalling=able(recalling),
            asked=able(asked),
            prompting=able(prompting),
            paused=tuple(name for name in asked if health[name].paused),
        )
