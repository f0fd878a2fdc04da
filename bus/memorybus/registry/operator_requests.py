"""Operators' requests to running providers: other limits of calls, and retries at once.

Commands write them, and workers obey with their next heartbeat. `Instances.read_view` reads the
structs, in the round trip that every heartbeat makes anyway.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from redis import Redis

from memorybus.config.call_limits import CallLimits
from memorybus.redis.connect import ask_redis
from memorybus.redis.hashes import decode_readable
from memorybus.redis.keys import Keys

MOST_AT_ONCE = 1_000
"""The most calls at once that a command may allow a worker (G10)."""


class Tuning(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits that replace those of the settings; None leaves a limit as the settings have it.

    Attributes:
        concurrency: the most calls at once in each worker, if the provider allows several.
        calls_per_second: the most calls of its write hooks in a second, over all workers; 0 is no
            bound.
        daily_budget: the most such calls in a day (UTC); 0 is no bound.
    """

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)] | None = None
    calls_per_second: Annotated[float, msgspec.Meta(ge=0)] | None = None
    daily_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def limits(self, configured: CallLimits) -> CallLimits:
        """Return the limits of calls, with this tuning applied to the settings."""
        given = {name: getattr(self, name) for name in CallLimits.__struct_fields__}
        return msgspec.structs.replace(
            configured, **{name: value for name, value in given.items() if value is not None}
        )

    def at_once(self, configured: int) -> int:
        """Return the most calls at once, with this tuning applied to the settings."""
        return self.concurrency or configured

    @property
    def given(self) -> dict[str, float]:
        """The limits that differ from the settings, by name."""
        return {
            name: value for name, value in msgspec.structs.asdict(self).items() if value is not None
        }


AS_CONFIGURED = Tuning()


class Tuned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tuning as somebody asked for it.

    Attributes:
        tuning: the limits.
        reason: why, for people.
        by: who wanted it, as ``user@host``.
        at: since when (wall time, milliseconds).
    """

    tuning: Tuning = AS_CONFIGURED
    reason: str = ""
    by: str = ""
    at: int = 0


class RetryRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to retry now what waits for another try of an instance.

    Attributes:
        id: the request's id. A worker carries out each request once, and ignores requests from
            before it started, because none of its events waited then.
        by: who asked for it, as ``user@host``.
        at: when (wall time, milliseconds).
    """

    id: str
    by: str = ""
    at: int = 0


class OperatorRequests:
    """Writes the requests, and reads the limits. Belongs to one thread.

    Every method raises `LogUnavailable` without Redis.

    Args:
        redis: the log's.
        keys: the namespace's.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys

    def tuned(self) -> dict[str, Tuned]:
        """Return the limits that replace those of the settings, by provider."""
        found: Mapping[bytes, bytes]
        found = ask_redis(lambda: self._redis.hgetall(self._keys.tuned), self._keys.tuned)
        return decode_readable(found, Tuned)

    def tune(self, provider: str, tuned: Tuned) -> None:
        """Set other limits; if it names none, those of the settings apply again."""
        if tuned.tuning == AS_CONFIGURED:
            self._drop(self._keys.tuned, provider)
        else:
            self._put(self._keys.tuned, provider, tuned)

    def retry(self, instance: str, request: RetryRequest) -> None:
        """Ask workers to retry now the events that wait for another try."""
        self._put(self._keys.retries, instance, request)

    def forget(self, name: str) -> None:
        """Forget all requests about an instance that is removed."""
        self._drop(self._keys.tuned, name)
        self._drop(self._keys.retries, name)

    def _put(self, key: str, name: str, what: Any) -> None:
        body = msgspec.json.encode(what)
        ask_redis(lambda: self._redis.hset(key, name, body), key)

    def _drop(self, key: str, name: str) -> None:
        ask_redis(lambda: self._redis.hdel(key, name), key)
