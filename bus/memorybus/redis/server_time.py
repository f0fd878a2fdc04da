"""Reads the wall time of a Redis server: the clock that all processes of a bus share."""

from typing import Any

from redis import Redis


def read_server_ms(redis: Redis) -> int:
    """Ask a server for its time, in milliseconds since the Unix epoch.

    Raises:
        redis.RedisError: no answer.
    """
    return to_milliseconds(redis.time())


def to_milliseconds(reply: Any) -> int:
    """Return the time in a reply to TIME, for callers that ask for more in the same round trip."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000
