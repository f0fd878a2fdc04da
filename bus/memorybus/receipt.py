"""What is known of published events: a receipt for each, and what is still unsent (G1)."""

from typing import Literal

import msgspec

Level = Literal["spooled", "logged", "replicated"]
"""How safe an event is: in the spool, in Redis, or confirmed by a replica or a synced file (G1)."""

LogState = Literal["unknown", "up", "down"]
"""Whether the log can be reached; unknown while the first connection is being made."""


class Receipt(msgspec.Struct, frozen=True):
    """What `publish` promises."""

    event_id: str  # 32 hex digits
    level: Level  # how safe the event is now; `MemoryBus.flush` waits for a higher one
    sequence: int  # its place in this process's spool
    # whether the log could be reached when the event was accepted: "up", "down" (the event is sent
    # later), or "unknown" while the first connection is being made
    log: LogState


class SpoolStats(msgspec.Struct, frozen=True):
    """What is unsent: rows, bytes of their bodies, and when the oldest was spooled (ms)."""

    events: int = 0
    size: int = 0
    oldest_at: int | None = None
