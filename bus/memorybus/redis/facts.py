"""Reads facts about a Redis server: release, known faults, eviction policy, durability, time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from redis import Redis
from redis.exceptions import ResponseError

SAFE_POLICY = "noeviction"  # the only eviction policy under which no event is dropped
_WEAKEST_FIRST = ("memory", "snapshots", "aof:no", "aof", "aof:everysec", "aof:always")


class Server(msgspec.Struct, frozen=True):
    """A server's facts."""

    version: str  # its release; for Valkey, Valkey's own
    policy: str  # what it does when it is out of memory
    durability: str  # "memory", "snapshots" or "aof:<fsync policy>"
    product: str = "Redis"  # "Redis" or "Valkey"

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())


def server_facts(redis: Redis) -> Server:
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


def read_server_ms(redis: Redis) -> int:
    """Ask a server for its time, in milliseconds since the Unix epoch."""
    return to_milliseconds(redis.time())


def to_milliseconds(reply: Any) -> int:
    """Return the time in a reply to TIME, for callers that ask for more in the same round trip."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


Release = tuple[int, ...]


class Fault(msgspec.Struct, frozen=True):
    """A published fault."""

    text: str  # what can happen, and its number
    source: str  # where its publishers describe it
    # of each product that has it, the first release of each series without it
    mended: Mapping[str, tuple[Release, ...]]


KNOWN_FAULTS = (
    Fault(
        "a Lua script can run code in the server (CVE-2025-49844)",
        "https://github.com/redis/redis/security/advisories/GHSA-4789-qfc9-5f9q",
        {
            "Redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
            "Valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
        },
    ),
    Fault(
        "the error of a Lua script can inject RESP replies (CVE-2025-67733)",
        "https://github.com/valkey-io/valkey/releases/tag/9.0.3",
        {"Valkey": ((7, 2, 12), (8, 0, 7), (8, 1, 6), (9, 0, 3))},
    ),
    Fault(
        "a Lua script that runs during a full sync uses freed memory (CVE-2026-23631)",
        "https://github.com/valkey-io/valkey/releases/tag/9.0.4",
        {"Valkey": ((7, 2, 13), (8, 0, 8), (8, 1, 7), (9, 0, 4))},
    ),
)


def faults_of(server: Server) -> Iterator[Fault]:
    for fault in KNOWN_FAULTS:
        if _has(server.release, fault.mended.get(server.product, ())):
            yield fault


def _has(release: Release, mended: tuple[Release, ...]) -> bool:
    """Return whether a release has a fault: series later than the last that is listed never had."""
    first = next(
        (candidate for candidate in mended if candidate[:2] == release[:2]), max(mended, default=())
    )
    return release < first
