"""Records losses that workers saw and the log itself no longer shows.

A stream that was trimmed lacks numbers for ever. But a log that was wiped, or went back to an older
state, continues to count as if nothing had happened. Only a worker that saw it before notices, so
it records the loss. The record stays until an operator deletes it.
"""

import logging
from typing import Literal

import msgspec
from redis import Redis

from memorybus.log.continuity import Gap
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys

_log = logging.getLogger("memorybus")


class Loss(msgspec.Struct, frozen=True):
    """One loss.

    Attributes:
        what: "wiped": the log is another one than before; "tail": it went back to an older state
            and gives numbers again; "gap": events were gone before they could be sealed.
        log: the id of the log that lost events.
        found_at: when a worker found it (its wall time): ISO 8601, UTC.
        gaps: the numbers that it lost, as they were given before the loss.
    """

    what: Literal["wiped", "tail", "gap"]
    log: str
    found_at: str
    gaps: list[Gap]

    @property
    def name(self) -> str:
        """The field under which it is stored: the same for every worker that finds the loss."""
        if self.what == "wiped":
            return f"wiped:{self.log}"
        gap = self.gaps[0]
        return f"{self.what}:{self.log}:{gap.partition}:{gap.first}-{gap.last}"


class Losses:
    """The hash of losses. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.losses

    def record(self, loss: Loss) -> None:
        """Record a loss, unless another worker did."""
        self._redis.hsetnx(self._key, loss.name, msgspec.json.encode(loss))

    def all(self) -> list[Loss]:
        """Return the recorded losses, oldest first; unreadable ones are left out."""
        bodies: dict[bytes, bytes] = self._redis.hgetall(self._key)  # type: ignore[assignment]
        found = []
        for name, body in bodies.items():
            try:
                found.append(msgspec.json.decode(body, type=prepared(Loss)))
            except msgspec.MsgspecError as error:
                _log.debug("%s: %r cannot be read: %s", self._key, name, error)
        return sorted(found, key=lambda loss: (loss.found_at, loss.name))
