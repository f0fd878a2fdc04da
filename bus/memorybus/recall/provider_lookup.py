"""Looks up which providers answer recalls now, at most once a second."""

import threading
from collections.abc import Mapping, Sequence

import msgspec
from redis import Redis

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.recall.breaker import RecallHealth
from memorybus.redis.keys import Keys
from memorybus.registry.roster import ProviderInfo, Roster, WorkerInfo

_LOOK_EVERY = 1.0
"""Seconds between two look-ups; heartbeats of workers come no more often."""

_AWAY = 300.0
"""Seconds after a provider was registered last in which a worker may be starting that serves it.

Workers register what they serve every ten heartbeats. While one is replaced, others may be alive
that serve something else, or answer no recalls; what is asked meanwhile waits for the next."""


class RecallProviders(msgspec.Struct, frozen=True):
    """The providers, by what they can answer now.

    Attributes:
        known: all registered providers.
        recalling: the providers whose recalls a live worker answers.
        asked: the providers that are asked ahead: those of `recalling`, and those that had a worker
            a moment ago: their requests wait for the next one. The configured ones if there is
            neither.
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
        self._lock = threading.Lock()

    def current(self) -> RecallProviders:
        """Return who answers; the answer is at most a second old."""
        with self._lock:
            if self._clock.monotonic() >= self._look_at:
                self.latest = self._look_up()
                self._look_at = self._clock.monotonic() + _LOOK_EVERY
            return self.latest

    def _look_up(self) -> RecallProviders:
        known, alive = self._roster.providers(), self._roster.alive()
        running, expected = split_by_worker(known, alive, self._roster.now_ms())
        recalling = [name for name in running if known[name].recall]
        asked = [name for name in expected if known[name].recall] or list(self._configured)
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


def split_by_worker(
    known: Mapping[str, ProviderInfo], alive: Sequence[WorkerInfo], now_ms: int
) -> tuple[list[str], list[str]]:
    """Return the providers whose recalls a live worker answers now, and those that one will answer.

    Args:
        known: the registered providers.
        alive: the workers whose heartbeat is fresh.
        now_ms: the server's wall time, milliseconds.

    Returns:
        The names of both, in the order of `known`; the second holds all of the first.
    """
    running = {name for worker in alive if worker.jobs for name in worker.providers}
    oldest = now_ms - _AWAY * 1000
    return (
        [name for name in known if name in running],
        [name for name, info in known.items() if name in running or info.seen_at >= oldest],
    )
