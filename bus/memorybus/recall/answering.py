"""Which providers answer recalls now, looked up at most once a second."""

import threading

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.recall.breaker import RecallHealth
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

_LOOK_EVERY = 1.0
"""Seconds between two looks; heartbeats of workers come no more often."""


class Answering(msgspec.Struct, frozen=True):
    """Who answers.

    Attributes:
        known: all registered providers.
        recalling: those whose recalls a live worker answers.
        asked: those that are asked ahead: these, or while no worker lives the configured ones,
            whose requests then wait for one.
        prompting: those that add to system prompts.
        paused: those that are left out of all of these, as several of their recalls failed.
    """

    known: frozenset[str] = frozenset()
    recalling: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    prompting: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()


class AnsweringProviders:
    """Looks up who answers. Thread-safe; raises what redis-py raises, and `LogError`.

    Attributes:
        latest: what the last look found.
    """

    def __init__(self, redis: Redis, settings: Settings, clock: Clock) -> None:
        """Look at nothing yet."""
        self.latest = Answering()
        self._roster = Roster(redis, Keys(settings.namespace))
        self._health = RecallHealth(redis, Keys(settings.namespace))
        self._configured = settings.providers
        self._clock = clock
        self._look_at = 0.0
        self._lock = threading.Lock()

    def now(self) -> Answering:
        """Return who answers, as of a second ago at most."""
        with self._lock:
            if self._clock.monotonic() >= self._look_at:
                self.latest = self._looked()
                self._look_at = self._clock.monotonic() + _LOOK_EVERY
            return self.latest

    def _looked(self) -> Answering:
        served = self._roster.answering_providers()
        recalling = [name for name, info in served.items() if info.recall]
        asked = recalling or list(self._configured)
        prompting = [name for name, info in served.items() if info.prompts]
        health = self._health.read(list(dict.fromkeys([*asked, *prompting])))

        def able(names: list[str]) -> tuple[str, ...]:
            return tuple(name for name in names if not health[name].paused)

        return Answering(
            known=frozenset(self._roster.providers()),
            recalling=able(recalling),
            asked=able(asked),
            prompting=able(prompting),
            paused=tuple(name for name in asked if health[name].paused),
        )
