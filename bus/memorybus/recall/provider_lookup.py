"""Looks up which providers answer recalls now, at most once a second."""

import threading
from collections.abc import Collection, Mapping

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.recall.demand import JOB_TTL_SECONDS
from memorybus.recall.health import RecallHealth
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

_LOOK_EVERY = 1.0
"""Seconds between two look-ups; heartbeats of workers come no more often."""


class RecallProviders(msgspec.Struct, frozen=True):
    """The providers, by what they can answer now.

    Attributes:
        known: all registered providers.
        recalling: the providers whose recalls a live worker answers.
        asked: the providers that are asked ahead: those of `recalling`, and those that may be
            about to get another worker (`still_awaited`), for which their requests wait. If nobody
            answers recalls, the configured ones, too.
        prompting: the providers that add to system prompts, by the same rule.
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
        self._running: Collection[str] = ()
        self._away: Mapping[str, float] = {}
        self._lock = threading.Lock()

    def current(self) -> RecallProviders:
        """Return who answers; the answer is at most a second old."""
        with self._lock:
            if self._clock.monotonic() >= self._look_at:
                self.latest = self._look_up()
                self._look_at = self._clock.monotonic() + _LOOK_EVERY
            return self.latest

    def _look_up(self) -> RecallProviders:
        known, served = self._roster.providers(), self._roster.job_providers()
        running = [name for name in known if name in served]
        self._away = still_awaited(self._running, self._away, running, self._clock.monotonic())
        self._running = running
        recalling = [name for name in running if known[name].recall]
        expected = [name for name in known if name in served or name in self._away]
        asked = [name for name in expected if known[name].recall]
        if not recalling:
            asked = list(dict.fromkeys([*asked, *self._configured]))
        prompting = [name for name in expected if known[name].prompts]
        health = self._health.read(list(dict.fromkeys([*asked, *prompting])))

        def able(names: list[str]) -> tuple[str, ...]:
            return tuple(name for name in names if not health[name].paused)

        return RecallProviders(
            known=frozenset(known),
            recalling=able(recalling),
            asked=able(asked),
            prompting=able(prompting),
            paused=tuple(name for name in asked if health[name].paused),
        )


def still_awaited(
    before: Collection[str], away: Mapping[str, float], running: Collection[str], now: float
) -> dict[str, float]:
    """Return the providers whose worker is missing, but may be replaced, and since when it is.

    While a worker is replaced, workers of other providers may be alive; what is asked meanwhile
    must not be left out for that. After `JOB_TTL_SECONDS` a waiting job has ended as well.

    Args:
        before: the providers that had a worker at the look-up before.
        away: what this function returned at that look-up.
        running: the providers that have a worker now.
        now: monotonic seconds.
    """
    gone = (set(before) | away.keys()) - set(running)
    since = {name: away.get(name, now) for name in gone}
    return {name: begun for name, begun in since.items() if now - begun <= JOB_TTL_SECONDS}
