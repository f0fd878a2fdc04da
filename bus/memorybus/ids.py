"""All randomness of the bus is here: event ids, derived ids, digests and jitter."""

import hashlib
import random
import secrets
import zlib
from collections.abc import Callable
from typing import BinaryIO

import uuid_utils

NewId = Callable[[], str]
"""Returns a fresh event id: 32 hex digits, sorted by time (UUID version 7)."""

NewSecret = Callable[[], str]
"""Returns a text that nobody can guess."""

DIGEST_BYTES = 8
_CHUNK_BYTES = 1 << 20


def new_id() -> str:
    """Return a fresh UUIDv7 as 32 hex digits."""
    return str(uuid_utils.uuid7().hex)


def new_mark() -> str:
    """Return six hex digits that distinguish things of the same name."""
    return new_id()[-6:]


def new_secret() -> str:
    """Return a fresh text of 256 bits that nobody can guess; it is used in URLs and headers."""
    return secrets.token_urlsafe(32)


class Derivation:
    """Event ids derived from idempotency keys that begin with the same parts.

    The parts are length-prefixed, so that different keys have different bytes, and hashed into a
    UUID of version 8 (RFC 9562: vendor-specific content). The same parts give the same id on every
    machine and in every release.

    Args:
        parts: the beginning, for example a session's scope, id and epoch.
    """

    def __init__(self, *parts: str | int) -> None:
        self._hasher = hashlib.blake2b(digest_size=16)
        for data in [str(part).encode("utf-8", "surrogatepass") for part in parts]:
            self._hasher.update(len(data).to_bytes(4, "big") + data)

    def id(self, *parts: str | int) -> str:
        """Return the id of the key that continues with `parts`: 32 hex digits."""
        hasher = self._hasher.copy()
        for data in [str(part).encode("utf-8", "surrogatepass") for part in parts]:
            hasher.update(len(data).to_bytes(4, "big") + data)
        raw = bytearray(hasher.digest())
        raw[6] = (raw[6] & 0x0F) | 0x80
        raw[8] = (raw[8] & 0x3F) | 0x80
        return raw.hex()


def derived_id(*parts: str | int) -> str:
    """Return the event id derived from an idempotency key (see `Derivation`)."""
    return Derivation(*parts).id()


def digest(data: bytes) -> bytes:
    """Return 8 bytes that stand for `data` where two payloads are compared (not for security)."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def checksum(payload: bytes) -> bytes:
    """Return 8 bytes (CRC-32 and length) that distinguish two payloads under one event id.

    It costs a third of `digest` on the publishing path. It guards against a producer's mistakes,
    not against malice: whoever can write events needs no collision.
    """
    return zlib.crc32(payload).to_bytes(4, "big") + len(payload).to_bytes(4, "big")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hex digits; it identifies data that is stored for long."""
    return hashlib.sha256(data).hexdigest()


def sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits, and rewind the file."""
    hasher = hashlib.sha256()
    while piece := file.read(_CHUNK_BYTES):
        hasher.update(piece)
    file.seek(0)
    return hasher.hexdigest()


def text_digest(text: str) -> str:
    """Return `digest` of a text as 16 hex digits; used in idempotency keys and Redis key names."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def new_rng() -> random.Random:
    """Return a random generator for jitter, seeded by the operating system."""
    return random.Random()  # noqa: S311  jitter needs no secrecy
