"""Requests of operators to providers at work: other limits of calls, and retries at once.

Commands write it, and workers obey with their next heartbeat. The structs are read by
`Instances.read_view`, in the round trip that every heartbeat makes anyway.
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
"""So many calls at once are the most that a command may ask of a worker (G10)."""


class Tuning(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits that hold instead of those of the settings; None is for those of the settings.

    Attributes:
        concurrency: calls at once, in each worker, of a provider that allows several.
        calls_per_second: of its write hooks, over all workers; 0 is no bound.
        daily_budget: the same of each day, UTC.
    """

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)] | None = None
    calls_per_second: Annotated[float, msgspec.Meta(ge=0)] | None = None
    daily_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def limits(self, configured: CallLimits) -> CallLimits:
        """Return the limits of calls that hold."""
        given = {name: getattr(self, name) for name in CallLimits.__struct_fields__}
        return msgspec.structs.replace(
            configured, **{name: value for name, value in given.items() if value is not None}
        )

    def at_once(self, configured: int) -> int:
        """Return how many calls at once hold."""
        return self.concurrency or configured

    @property
    def given(self) -> dict[str, float]:
        """What differs from the settings, by name."""
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


class RetryWish(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to retry now what waits for another try of an instance.

    Attributes:
        id: of this request. A worker carries out each one once, and ignores those made before it
            started, since nothing of its own waited then.
        by: who wanted it.
        at: when (wall time, milliseconds).
    """

    id: str
    by: str = ""
    at: int = 0


class Steering:
    """Writes and reads both hashes. Belongs to one thread; raises `LogUnavailable` without Redis.

    Args:
        redis: the log's.
        keys: the namespace's.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._keys = keys

    def tuned(self) -> dict[str, Tuned]:
        """Return the limits that hold instead of the settings', by provider."""
        found: Mapping[bytes, bytes]
        found = ask_redis(lambda: self._redis.hgetall(self._keys.tuned), self._keys.tuned)
        return decode_readable(found, Tuned)

    def tune(self, provider: str, tuned: Tuned) -> None:
        """Let other limits hold; those of the settings if it names none."""
        if tuned.tuning == AS_CONFIGURED:
            self._drop(self._keys.tuned, provider)
        else:
            self._put(self._keys.tuned, provider, tuned)

    def retry(self, instance: str, wish: RetryWish) -> None:
        """Let what waits for another try go on now."""
        self._put(self._keys.retries, instance, wish)

    def forget(self, name: str) -> None:
        """Forget what was wanted of an instance that is removed."""
        self._drop(self._keys.tuned, name)
        self._drop(self._keys.retries, name)

    def _put(self, key: str, name: str, what: Any) -> None:
        body = msgspec.json.encode(what)
        ask_redis(lambda: self._redis.hset(key, name, body), key)

    def _drop(self, key: str, name: str) -> None:
        ask_redis(lambda: self._redis.hdel(key, name), key)
