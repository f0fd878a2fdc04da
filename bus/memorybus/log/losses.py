"""Records losses that workers saw and the log itself no longer shows.

A stream that was trimmed lacks numbers for ever. But a log that was wiped, or went back to an older
state, continues to count as if nothing had happened. Only a worker that saw it before notices, so
it records the loss. The record stays until an operator deletes it.
"""

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import msgspec
from msgspec.structs import replace
from redis import Redis

from memorybus.log.continuity import NO_EVENT_SEEN, Gap
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys

_log = logging.getLogger("memorybus")
HowLost = Literal["wiped", "tail", "gap"]
"""How events were lost: the log is another one than before, or it went back to an older state and
gives numbers again, or they were gone before they could be sealed."""


def lost_gap(how: HowLost, log: str | None, gap: Gap, found_at: str | None) -> Gap:
    """Return a gap with the name of its record: the same for every worker that finds the loss."""
    place = "" if how == "wiped" else f":{gap.partition}:{gap.first}-{gap.last}"
    return replace(gap, record=f"{how}:{log}{place}", found_at=found_at)


class _Record(msgspec.Struct, frozen=True):
    """The gaps of one record, and when they were found."""

    gaps: list[Gap]
    found_at: str | None


class Losses:
    """The hash of losses. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.losses

    def note(self, gaps: Sequence[Gap]) -> None:
        for name, of_record in groupby(gaps, key=lambda gap: gap.record):
            lost = list(of_record)
            record = _Record(lost, lost[0].found_at)
            self._redis.hsetnx(self._key, name, msgspec.json.encode(record))

    def all(self) -> list[Gap]:
        bodies: dict[bytes, bytes] = self._redis.hgetall(self._key)  # type: ignore[assignment]
        lost = []
        for name, body in bodies.items():
            try:
                record = msgspec.json.decode(body, type=prepared(_Record))
                lost += [
                    replace(gap, record=name.decode(), found_at=record.found_at)
                    for gap in record.gaps or [NO_EVENT_SEEN]
                ]
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                _log.debug("%s: %r cannot be read: %s", self._key, name, error)
        return sorted(lost, key=lambda gap: (gap.found_at or "", gap.record))
