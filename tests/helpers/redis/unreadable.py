"""Bytes that are no envelope, each in another way; some cost the careless much to find out."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import redis
import zstandard
from memorybus.config.settings import Settings
from memorybus.events import LARGEST_BODY
from memorybus.ids import digest, new_id
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent
from memorybus.wire.codec import Encoder

_BLOCK = 128 << 10
"""Bytes of a block of zstd at most."""

_MAGIC = bytes.fromhex("28b52ffd")


def envelope_bytes(event: Mapping[str, Any] | None = None, **fields: Any) -> bytes:
    """Return the msgpack of an envelope, with other fields than ours would have."""
    whole = {
        "id": "ab" * 16,
        "key": "session:s",
        "scope": {},
        "session": {"id": "s", "root": "s"},
        "at": 1,
        "event": event or {"type": "TurnCompleted", "user": "hello"},
    }
    return msgspec.msgpack.encode(whole | fields)


def claiming(size: int) -> bytes:
    """Return a frame of a single byte that claims to be of some size."""
    return _MAGIC + b"\xe0" + size.to_bytes(8, "little") + b"\x01\x00\x00x"


def bomb(size: int) -> bytes:
    """Return a sound frame of so many zeros, a multiple of 128 KiB, each of which takes 4 bytes."""
    blocks = [(1 << 1 | _BLOCK << 3).to_bytes(3, "little") + b"\x00"] * (size // _BLOCK)
    blocks[-1] = (1 | 1 << 1 | _BLOCK << 3).to_bytes(3, "little") + b"\x00"
    return _MAGIC + b"\xe0" + size.to_bytes(8, "little") + b"".join(blocks)


def _unsized(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(body)


def _with_a_dictionary(body: bytes) -> bytes:
    known = zstandard.train_dictionary(1_024, [b"ladder %d " % n * 40 for n in range(100)])
    return zstandard.ZstdCompressor(dict_data=known).compress(body)


_PACKED = Encoder(0).pack(envelope_bytes({"type": "TurnCompleted", "user": "ladder " * 40}))

UNREADABLE: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "nothing": b"",
        "no msgpack": b"\xc1",
        "no map": msgspec.msgpack.encode([1, 2]),
        "bytes behind the map": envelope_bytes() + b"\x00",
        "a text that is not UTF-8": envelope_bytes().replace(b"hello", b"\xed\xa0\x80xx"),
        "a list of four billion": envelope_bytes({"type": "TurnCompleted", "messages": []}).replace(
            b"messages\x90", b"messages\xdd\xff\xff\xff\xff"
        ),
        "lists in lists": b"\x91" * 100_000,
        "version 0": envelope_bytes(v=0),
        "version -1": envelope_bytes(v=-1),
        "a version of 64 bits": envelope_bytes(v=(1 << 64) - 1),
        "version 0 of an unknown type": envelope_bytes({"type": "Dreamt"}, v=0),
        "an id that is none": envelope_bytes(id="zz" * 16),
        "a frame's beginning": b"\x28",
        "a frame of nothing": zstandard.compress(b""),
        "a frame that claims 1 TiB": claiming(1 << 40),
        "a frame that claims one byte too many": claiming(LARGEST_BODY + 1),
        "a frame that claims 64 MiB": claiming(LARGEST_BODY),
        "a bomb": bomb(300 << 20),
        "a frame of unstated size": _unsized(envelope_bytes()),
        "a bomb of unstated size": _unsized(bytes(70 << 20)),
        "two frames": _PACKED + _PACKED,
        "bytes behind the frame": _PACKED + b"\x00",
        "a frame cut off": _PACKED[:-5],
        "a frame that needs a dictionary": _with_a_dictionary(envelope_bytes()),
    }
)


def append(client: redis.Redis, settings: Settings, partition: int, *bodies: bytes) -> None:
    """Append bodies as our own publishers do, whatever is in them."""
    keys, producer = Keys(settings.namespace), new_id()
    events = [
        OutgoingEvent(number, bytes.fromhex(new_id()), digest(body), body)
        for number, body in enumerate(bodies, 1)
    ]
    call = scripts.append(keys, partition, producer, 0, events, window_ms=60_000, max_ids=1_000)
    assert isinstance(scripts.run(client, call), Appended)
