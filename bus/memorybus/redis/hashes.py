"""Hashes: their entries as structs, all of them or the readable ones, and hashes of counts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memorybus.errors import ForeignKey
from memorybus.msgspec_types import prepared

if TYPE_CHECKING:
    from redis import Redis

_T = TypeVar("_T")
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors that an unreadable entry raises; any program that can write to Redis may have made it."""


def decode_entries(key: str, bodies: Mapping[bytes, bytes], kind: type[_T]) -> dict[str, _T]:
    try:
        return {
            name.decode(): msgspec.json.decode(body, type=prepared(kind))
            for name, body in sorted(bodies.items())
        }
    except UNREADABLE as error:
        raise ForeignKey(f"{key}: an entry cannot be read ({error}); delete it") from error


def decode_readable(bodies: Mapping[bytes, bytes], kind: type[Any]) -> dict[str, Any]:
    """Return the readable entries; one of another release does not hide the others."""
    found: dict[str, Any] = {}
    for name, body in sorted(bodies.items()):
        with contextlib.suppress(*UNREADABLE):
            found[name.decode()] = msgspec.json.decode(body, type=prepared(kind))
    return found


def decode_or_none(body: bytes | None, kind: type[_T]) -> _T | None:
    """Return what an entry holds; None if there is none, or if it cannot be read."""
    try:
        return None if body is None else msgspec.json.decode(body, type=prepared(kind))
    except UNREADABLE:
        return None


def add_counts(redis: Redis, amounts: Mapping[tuple[str, str], int], life_ms: int) -> None:
    """Add amounts, given by key and field, in one round trip; each hash expires after `life_ms`."""
    with redis.pipeline(transaction=False) as pipe:
        for (key, field), amount in amounts.items():
            if amount:
                pipe.hincrby(key, field, amount)
        for key in {key for key, _ in amounts}:
            pipe.pexpire(key, life_ms)
        pipe.execute()
