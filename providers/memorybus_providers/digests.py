"""Digests of a state: the spelling of keys, and the digest of what a key holds.

For authors of `MemoryProvider.digest`: a key names the owner and the memories, as a person would.
Plain data is hashed, in an order that the events determine.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

StateRows = Iterator[tuple[Any, ...]]
"""The rows of plain data that a key of a state holds."""

_DIGEST_BYTES = 16
"""Length of a digest: 128 bits tell two states apart, and a page of pairs stays short."""


def key_of(*parts: str) -> str:
    """Return a key: its parts with a ``/`` between them; a ``/`` in a part is written ``%2F``."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def digest_of(rows: Iterable[Any]) -> str:
    """Return the digest of rows of plain data, as 32 hex digits; it uses constant memory."""
    found = hashlib.sha256()
    encode = msgspec.msgpack.Encoder().encode
    for row in rows:
        found.update(encode(row))
    return found.digest()[:_DIGEST_BYTES].hex()


def paired(keys: Iterable[tuple[str, Iterable[Any]]], after: str = "") -> Iterator[tuple[str, str]]:
    """Yield key and digest, in the order of keys, for keys with rows that lie above `after`.

    Args:
        keys: each key once, in any order, with its rows, which are read when the key is yielded.
        after: see `MemoryProvider.digest`.
    """
    for key, rows in sorted(((key, rows) for key, rows in keys if key > after), key=_first):
        held = iter(rows)
        for row in held:  # a key without rows counts as one that never existed
            yield key, digest_of(_chained(row, held))
            break


def _first(pair: tuple[str, Iterable[Any]]) -> str:
    return pair[0]


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
