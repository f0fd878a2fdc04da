"""Stops lanes for a while if their archive cannot be read (G7), or their turns fail."""

import contextlib
import logging
from collections.abc import Iterable

import msgspec
from memorybus.clock import Clock
from memorybus.errors import ArchiveError
from memorybus.redis import scripts
from memorybus.redis.keys import Keys, lane_name
from memorybus.registry.lanes import HALTED
from memorybus.text.redact import one_line
from redis import Redis
from redis.exceptions import RedisError

from memorybus_workers.calls.retry import describe_failure

_log = logging.getLogger("memorybus")
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.5, 30.0
"""Seconds until the first new try, and the most seconds between later ones."""


class Halt(msgspec.Struct, frozen=True):
    """Why a lane is stopped, when it tries again (monotonic), and how many seconds it waits."""

    why: str
    until: float
    delay: float


class Halts:
    """The stopped lanes of one instance. Belongs to one thread."""

    def __init__(self, redis: Redis, keys: Keys, provider: str, clock: Clock) -> None:
        self._redis = redis
        self._keys = keys
        self._provider = provider
        self._clock = clock
        self._halts: dict[int, Halt] = {}

    def halt(self, partition: int, error: Exception) -> None:
        halt = self._halts.get(partition)
        expected = isinstance(error, ArchiveError)
        why = one_line(str(error)) if expected else describe_failure(error)
        delay = min(MAX_RETRY_SECONDS, halt.delay * 2) if halt else FIRST_RETRY_SECONDS
        self._halts[partition] = Halt(why, self._clock.monotonic() + delay, delay)
        if halt is None or halt.why != why:
            place = f"provider {self._provider}, {lane_name(partition)}"
            _log.error("%s is stopped: %s", place, why, exc_info=None if expected else error)
        self._write_reason(partition, why)

    def resume(self, partition: int) -> None:
        if self._halts.pop(partition, None) is not None:
            _log.info("provider %s, %s continues", self._provider, lane_name(partition))
            with contextlib.suppress(RedisError, OSError):  # the next halt writes it again
                self._redis.hdel(self._keys.lane(partition, self._provider), HALTED)

    def retry_now(self) -> None:
        now = self._clock.monotonic()
        for partition, halt in self._halts.items():
            self._halts[partition] = msgspec.structs.replace(halt, until=now)

    def not_halted(self, partitions: Iterable[int]) -> list[int]:
        if not self._halts:
            return list(partitions)
        now = self._clock.monotonic()
        return [p for p in partitions if p not in self._halts or self._halts[p].until <= now]

    def _write_reason(self, partition: int, why: str) -> None:
        key = self._keys.lane(partition, self._provider)
        with contextlib.suppress(RedisError, OSError):
            scripts.run(self._redis, scripts.write_fields(key, {HALTED: why.encode()}))
