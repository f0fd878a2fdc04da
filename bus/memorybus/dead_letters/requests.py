"""Operators' requests about dead letters, which they send to the lanes' owners through Redis (G6).

Only a lane's owner may apply its events or change its dead letters (G5). So a command writes
requests into one hash per provider, and waits until the owners have carried them out and removed
them. A request has an id and never changes. Carrying it out a second time has no effect.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from redis import Redis

from memorybus.errors import MemoryBusError
from memorybus.msgspec_types import prepared
from memorybus.redis.keys import Keys, lane_name

MAX_REQUESTS = 256
"""The most requests that may wait for one provider (G10); more are refused."""

MAX_ITEMS = 500
"""The most keys or letters in one request; `split_items` makes several requests."""

_FIELD = re.compile(rb"p(\d{2,6}):[0-9a-f]{32}")

T = TypeVar("T")


class TooManyRequests(MemoryBusError):
    """More requests about a provider's dead letters were sent than may wait."""


class LetterRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operator's request about dead letters of one lane.

    Attributes:
        id: the id of this request (32 hex digits, sorted by time).
        partition: the lane's partition.
        action: "retry" applies the letters of `keys`, in order, until one is refused again;
            "discard" removes the letters at `entries`; "edit" puts `event` in the place of the one
            at `entries[0]`. After the last two, their key is also applied in order, unless an
            earlier letter of it waits.
        keys: order keys, for "retry".
        entries: places in the log, for "discard" and "edit".
        event: the fields of the new event, for "edit".
        reason: why, in the operator's words.
        operator: who asks, as ``user@host``.
        at: when it was asked, milliseconds since the Unix epoch.
    """

    id: str
    partition: int
    action: Literal["retry", "discard", "edit"]
    keys: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    event: dict[str, Any] = {}
    reason: str = ""
    operator: str = ""
    at: int = 0

    @property
    def field(self) -> str:
        """Its field in the hash; it names the lane, so that owners read only their requests."""
        return f"{lane_name(self.partition)}:{self.id}"


class LetterRequests:
    """The waiting requests of one provider. Every method raises what redis-py raises."""

    def __init__(self, redis: Redis, keys: Keys, provider: str) -> None:
        """Use the log's Redis."""
        self._redis = redis
        self._key = keys.redo(provider)

    def waiting_fields(self) -> dict[str, int]:
        """Return the partition of every request that waits, by its field; one round trip."""
        fields: Any = self._redis.hkeys(self._key)
        found = ((field, _FIELD.fullmatch(field)) for field in fields)
        return {field.decode(): int(match[1]) for field, match in found if match}

    def read(self, fields: Sequence[str]) -> list[LetterRequest | None]:
        """Return requests by their fields; None for one that is gone or unreadable here."""
        raw: Any = self._redis.hmget(self._key, fields) if fields else []
        return [_request(body) for body in raw]

    def send(self, requests: Sequence[LetterRequest]) -> None:
        """Write requests for the owners.

        Raises:
            TooManyRequests: more than `MAX_REQUESTS` would wait.
        """
        waiting: Any = self._redis.hlen(self._key)
        if waiting + len(requests) > MAX_REQUESTS:
            raise TooManyRequests(
                f"{len(requests)} requests on top of {waiting} that wait are more than "
                f"{MAX_REQUESTS}: select less at once, or let a worker carry out what waits"
            )
        if requests:
            bodies: Any = {request.field: msgspec.json.encode(request) for request in requests}
            self._redis.hset(self._key, mapping=bodies)

    def remove(self, fields: Iterable[str]) -> None:
        """Remove requests that were carried out."""
        self._redis.hdel(self._key, *fields)


def split_items(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Split items into parts of at most `MAX_ITEMS`, each of which fits one request."""
    return (tuple(items[i : i + MAX_ITEMS]) for i in range(0, len(items), MAX_ITEMS))


def _request(body: bytes | None) -> LetterRequest | None:
    try:
        return None if body is None else msgspec.json.decode(body, type=prepared(LetterRequest))
    except msgspec.MsgspecError:
        return None
