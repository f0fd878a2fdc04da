"""Asks for recalls: writes a request to Redis, and enqueues one RQ job per provider and session."""

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec
from redis import Redis

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.log.stream import read_head_numbers
from memorybus.recall.health import RecallHealth
from memorybus.recall.model import (
    GENERATION,
    Ask,
    CarryAsk,
    RecallRequest,
    WarmAsk,
    lifetime_ms,
    provider_of,
)
from memorybus.recall.pending import REPLY_TIMEOUT
from memorybus.recall.queue import JOB_TTL_SECONDS, RecallQueue
from memorybus.redis import scripts
from memorybus.redis.connect import connect_jobs, redis_errors
from memorybus.redis.keys import Keys
from memorybus.registry.roster import Roster

_LOOK_EVERY = 1.0  # seconds between two look-ups; heartbeats of workers come no more often


class RecallProviders(msgspec.Struct, frozen=True):
    """The providers, by what they can answer now."""

    known: frozenset[str] = frozenset()  # all registered providers
    recalling: tuple[str, ...] = ()  # the providers whose recalls a live worker answers
    # The providers that are asked ahead: those of `recalling`, and those that may be about to get
    # another worker (`still_awaited`), for which their requests wait. If nobody answers recalls,
    # the configured ones, too.
    asked: tuple[str, ...] = ()
    prompting: tuple[str, ...] = ()  # the providers that add to system prompts, by the same rule
    # the providers that `recalling`, `asked` and `prompting` leave out, because several of their
    # recalls failed
    paused: tuple[str, ...] = ()


class RecallProviderLookup:
    """Looks up who answers. Thread-safe; raises what redis-py raises, and `LogError`."""

    def __init__(self, redis: Redis, settings: Settings, clock: Clock) -> None:
        self.latest = RecallProviders()  # the result of the last look-up
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
        providers, served = self._roster.providers(), self._roster.job_providers()
        running = [name for name in providers if name in served]
        self._away = still_awaited(self._running, self._away, running, self._clock.monotonic())
        self._running = running
        recalling = [name for name in running if providers[name].recall]
        expected = [name for name in providers if name in served or name in self._away]
        asked = [name for name in expected if providers[name].recall]
        if not recalling:
            asked = list(dict.fromkeys([*asked, *self._configured]))
        prompting = [name for name in expected if providers[name].prompts]
        health = self._health.read(list(dict.fromkeys([*asked, *prompting])))

        def able(names: list[str]) -> tuple[str, ...]:
            return tuple(name for name in names if not health[name].paused)

        return RecallProviders(
            known=frozenset(providers),
            recalling=able(recalling),
            asked=able(asked),
            prompting=able(prompting),
            paused=tuple(name for name in asked if health[name].paused),
        )


def still_awaited(
    before: Collection[str], away: Mapping[str, float], running: Collection[str], now: float
) -> dict[str, float]:
    """Return the providers whose worker is missing, but may be replaced, and since when it is.

    What is asked meanwhile must not be left out. After `JOB_TTL_SECONDS` a waiting job has ended.
    """
    gone = (set(before) | away.keys()) - set(running)
    since = {name: away.get(name, now) for name in gone}
    return {name: begun for name, begun in since.items() if now - begun <= JOB_TTL_SECONDS}


class RecallRequester:
    """Sends requests for recalls. Belongs to one thread."""

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        clock: Clock = SYSTEM,
        patience: float = REPLY_TIMEOUT,
    ) -> None:
        self._redis = redis
        self._jobs = connect_jobs(settings, timeout=patience)
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._health = RecallHealth(redis, self._keys)
        self._queues: dict[str, RecallQueue] = {}
        self._answering = RecallProviderLookup(redis, settings, clock)

    def ask(self, ask: Ask) -> None:
        with redis_errors("recall"):
            if isinstance(ask, CarryAsk):
                self._carry(ask)
            else:
                self._ask_ahead(ask)

    def _ask_ahead(self, ask: WarmAsk) -> None:
        answering = self._answering.current()
        positions = read_head_numbers(self._redis, self._keys, ask.partitions)
        want = msgspec.structs.replace(ask.want, positions=positions)
        if want.prompt:
            self._request_prompt(ask.slot, want, answering)
            return
        self.request(ask.slot, want, answering.asked)
        if answering.paused:
            self._health.count_skipped(answering.paused)

    def _request_prompt(self, slot: str, want: RecallRequest, answering: RecallProviders) -> None:
        """Ask for additions to system prompts, and delete those of providers that were removed."""
        held = cast("list[bytes]", self._redis.hkeys(self._keys.warm(slot)))
        gone = [name for name in held if provider_of(name) not in answering.known]
        if gone:
            self._redis.hdel(self._keys.warm(slot), *gone)
        if answering.prompting:
            self.request(slot, want, answering.prompting)

    def request(self, slot: str, want: RecallRequest, providers: Sequence[str]) -> list[str]:
        """Write a request and enqueue its jobs; return the providers whose queue is full (G10)."""
        ttl = lifetime_ms(self._settings, want)
        call = scripts.request_recall(self._keys, slot, msgspec.json.encode(want), ttl)
        scripts.run(self._redis, call)
        refused = [name for name in providers if not self._queue(name).put(slot)]
        if refused:
            self._health.count_skipped(refused)
        return refused

    def close(self) -> None:
        self._jobs.close()

    def _queue(self, provider: str) -> RecallQueue:
        if provider not in self._queues:
            self._queues[provider] = RecallQueue(self._jobs, self._settings, provider)
        return self._queues[provider]

    def _carry(self, ask: CarryAsk) -> None:
        """Copy the warm results of the session before, unless the new one has some."""
        new = self._keys.warm(ask.slot)
        fields = cast("dict[bytes, bytes]", self._redis.hgetall(self._keys.warm(ask.origin)))
        results: dict[Any, Any] = {
            name: body for name, body in fields.items() if not name.startswith(GENERATION)
        }
        if results and not self._redis.exists(new):
            with self._redis.pipeline(transaction=True) as pipe:
                for name, body in results.items():
                    pipe.hsetnx(new, name, body)  # an answer may have come meanwhile
                pipe.pexpire(new, round(self._settings.recall_ttl * 1000))
                pipe.execute()
