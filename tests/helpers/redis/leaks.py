"""No key may live for ever unless the table of keys says so."""

import redis
from memorybus.redis.key_table import is_permanent

FOREIGN = ("rq:",)
"""Prefixes of keys that other libraries write; their lifetime is not ours to judge."""


def leaked_keys(client: redis.Redis) -> list[str]:
    """Return the keys without a time to live that may not stay (`memorybus.redis.key_table`)."""
    return sorted(
        key
        for key in (raw.decode("utf-8", "replace") for raw in client.scan_iter(count=1000))
        if not key.startswith(FOREIGN)
        and not is_permanent(key, key.split(":", 1)[0])
        and client.ttl(key) == -1
    )
