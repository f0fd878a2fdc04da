"""Reads facts about a Redis server: its release, its eviction policy and its durability."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from redis import Redis
from redis.exceptions import ResponseError

SAFE_POLICY = "noeviction"
"""The only eviction policy under which no event is dropped."""

_WITHOUT_AOF = ("memory", "snapshots")
_WEAKEST_FIRST = (*_WITHOUT_AOF, "aof:no", "aof", "aof:everysec", "aof:always")


class Server(msgspec.Struct, frozen=True):
    """A server's facts.

    Attributes:
        version: its release; for Valkey, Valkey's own.
        policy: what it does when it is out of memory.
        durability: "memory", "snapshots" or "aof:<fsync policy>".
        product: "Redis" or "Valkey".
    """

    version: str
    policy: str
    durability: str
    product: str = "Redis"

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())

    @property
    def has_aof(self) -> bool:
        """Whether it keeps an append-only file."""
        return self.durability not in _WITHOUT_AOF


def server_facts(redis: Redis) -> Server:
    """Ask one server.

    Raises:
        redis.RedisError: no answer.
    """
    info = redis.info("everything")
    return Server(
        version=str(info.get("valkey_version") or info["redis_version"]),
        product="Valkey" if "valkey_version" in info else "Redis",
        policy=str(info.get("maxmemory_policy", SAFE_POLICY)),
        durability=_durability(redis, info),
    )


def weakest_of(servers: Sequence[Server]) -> Server:
    """Return the minimum of a log's servers: the oldest release, and the weakest durability."""
    oldest = min(servers, key=lambda server: server.release)
    return Server(
        version=oldest.version,
        product=oldest.product,
        policy=next((s.policy for s in servers if s.policy != SAFE_POLICY), SAFE_POLICY),
        durability=min((s.durability for s in servers), key=_WEAKEST_FIRST.index),
    )


def _durability(redis: Redis, info: Mapping[str, Any]) -> str:
    if int(info.get("aof_enabled", 0)):
        fsync = _config(redis, "appendfsync")
        return f"aof:{fsync}" if fsync else "aof"
    return "snapshots" if _config(redis, "save") else "memory"


def _config(redis: Redis, name: str) -> str:
    try:
        return str(dict(redis.config_get(name)).get(name, ""))
    except ResponseError:
        return ""  # managed servers forbid CONFIG
