"""How full the memory and the disk of Redis are; pure."""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from memorybus.text.display import format_size

WARN_SHARE, FULL_SHARE = 0.8, 0.95
"""The shares of a limit from which it is nearly used up, and used up."""

LimitFrom = Literal["maxmemory", "available", "machine", "unknown"]
FillLevel = Literal["ok", "warning", "critical"]

_LIMITED_BY: Mapping[LimitFrom, str] = {
    "maxmemory": "maxmemory",
    "available": "what this machine has left for it",
    "machine": "all memory of its machine, whatever else runs there",
}


class Memory(msgspec.Struct, frozen=True):
    """The memory of Redis, as `status --json` prints it.

    Attributes:
        used: bytes that it uses.
        limit: bytes that it may use; null if nobody knows.
        limit_from: where the limit comes from. "maxmemory": its setting; "available": what it uses
            and what this machine, where it runs, has left; "machine": all memory of its machine.
    """

    used: int
    limit: int | None
    limit_from: LimitFrom

    @property
    def share(self) -> float:
        """The share of the limit that is used; 0.0 without a limit."""
        return self.used / self.limit if self.limit else 0.0

    def __str__(self) -> str:
        """Describe it for people."""
        if self.limit is None:
            return f"{format_size(self.used)} used, the limit is unknown"
        used, limit = format_size(self.used), format_size(self.limit)
        return f"{used} of {limit} used, {self.share:.0%} ({_LIMITED_BY[self.limit_from]})"


class Disk(msgspec.Struct, frozen=True):
    """The embedded server's disk: its free bytes, and those of the append-only file."""

    free: int
    aof: int

    @property
    def share(self) -> float:
        """The share that is used while the file is rewritten, which takes its size once more."""
        return 2 * self.aof / ((self.aof + self.free) or 1)

    def __str__(self) -> str:
        """Describe it for people."""
        return f"{format_size(self.free)} free, the append-only file has {format_size(self.aof)}"


def fill_level(share: float) -> FillLevel:
    """Return how severe it is that this share of a limit is used."""
    return "critical" if share >= FULL_SHARE else "warning" if share >= WARN_SHARE else "ok"


def read_memory(info: Mapping[str, Any], left: int | None) -> Memory:
    """Return the memory from INFO; `left` is what this machine has free, if Redis runs on it."""
    used = int(info["used_memory"])
    if limit := int(info.get("maxmemory", 0)):
        return Memory(used, limit, "maxmemory")
    if left is not None:
        return Memory(used, used + left, "available")
    if total := int(info.get("total_system_memory", 0)):
        return Memory(used, total, "machine")
    return Memory(used, None, "unknown")


def available_bytes(meminfo: str) -> int | None:
    """Return the bytes that programs can still get, from Linux's ``/proc/meminfo``."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
