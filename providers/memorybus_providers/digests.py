"""Digests of a state: how keys are spelled, and how what a key holds becomes a digest.

For authors of `MemoryProvider.digest`: a key names whose memories they are and which of them, as a
person would; what is hashed is plain data, in an order that the events determine.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

_BYTES = 16
"""Length of a digest: 128 bits tell two states apart, and a page of pairs stays short."""


def key_of(*parts: str) -> str:
    """Return a key: its parts with a ``/`` between them; one within a part is written ``%2F``."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def digest_of(rows: Iterable[Any]) -> str:
    """Return the digest of rows of plain data, as 32 hex digits; memory stays flat."""
    found = hashlib.sha256()
    encode = msgspec.msgpack.Encoder().encode
    for row in rows:
        found.update(encode(row))
    return found.digest()[:_BYTES].hex()


def paired(keys: Iterable[tuple[str, Iterable[Any]]], after: str = "") -> Iterator[tuple[str, str]]:
    """Yield key and digest, in the order of keys, of what holds anything and lies above `after`.

    Args:
        keys: keys in any order, each once, with its rows, which are read only when it is its turn.
        after: see `MemoryProvider.digest`.
    """
    for key, rows in sorted(((key, rows) for key, rows in keys if key > after), key=_first):
        held = iter(rows)
        for row in held:  # a key that holds nothing is as one that was never there
            yield key, digest_of(_chained(row, held))
            break


def _first(pair: tuple[str, Iterable[Any]]) -> str:
    return pair[0]


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
