"""Adds to hashes of counts, which all processes of a bus share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis import Redis


def add_counts(redis: Redis, amounts: Mapping[tuple[str, str], int], life_ms: int) -> None:
    """Add amounts, given by key and field, in one round trip; each hash expires after `life_ms`.

    Raises:
        redis.RedisError: Redis is away.
    """
    with redis.pipeline(transaction=False) as pipe:
        for (key, field), amount in amounts.items():
            if amount:
                pipe.hincrby(key, field, amount)
        for key in {key for key, _ in amounts}:
            pipe.pexpire(key, life_ms)
        pipe.execute()
