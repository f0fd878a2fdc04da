"""Operators' requests to retry at once what waits for its next try.

Commands write them, and workers obey with their next heartbeat. `Instances.read_view` reads them,
in the round trip that every heartbeat makes anyway.
"""

import msgspec
from redis import Redis

from memorybus.redis.connect import ask_redis
from memorybus.redis.keys import Keys


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


class RetryRequests:
    """Writes the requests. Belongs to one thread; raises `LogUnavailable` without Redis.

    Args:
        redis: the log's.
        keys: the namespace's.
    """

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.retries

    def send(self, instance: str, request: RetryRequest) -> None:
        """Ask workers to retry now the events that wait for another try."""
        body = msgspec.json.encode(request)
        ask_redis(lambda: self._redis.hset(self._key, instance, body), self._key)

    def forget(self, instance: str) -> None:
        """Forget the request about an instance that is removed."""
        ask_redis(lambda: self._redis.hdel(self._key, instance), self._key)
