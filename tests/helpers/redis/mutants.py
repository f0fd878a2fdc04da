"""Real entries' bytes, damaged: each bit of them turned, and many changes at once."""

import random
from collections.abc import Callable, Iterator, Sequence

import zstandard
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus.wire.codec import PACKED_MARK, Encoder

from helpers.stories.samples import SAMPLES, envelope

_PLAIN, _PACKING = Encoder(1 << 30), Encoder(0)
_MAX_CHANGED_BYTES = 12
"""Bytes that one change concerns."""

_SIZES = (0, 1, 255, 1 << 16, (64 << 20) - 1, 64 << 20, (64 << 20) + 1, 1 << 32, 1 << 40, 1 << 63)

Change = Callable[[random.Random, bytearray], None]


def entries() -> list[bytes]:
    """Return bodies as publishers write them: of every type, packed where that pays."""
    deep = {"role": "tool", "content": [{"type": "text", "text": "ladder", "n": {"at": [1.5, -3]}}]}
    more = (
        TurnCompleted(user="Where is the ladder? " * 30, messages=(deep, deep), ordinal=3),
        MemoryWritten(action="add", content="梯子 \N{LADDER} " * 60, provenance={"a": "b"}),
    )
    bodies = [_PLAIN.envelope(envelope(event)) for event in (*SAMPLES, *more)]
    packed = [_PACKING.pack(body) for body in bodies]
    return [*bodies, *(body for body in packed if body[:1] == PACKED_MARK)]


def turned(body: bytes) -> Iterator[bytes]:
    """Yield a body with each of its bits turned, one at a time."""
    for bit in range(len(body) * 8):
        changed = bytearray(body)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def mutated(rng: random.Random, bodies: Sequence[bytes]) -> Iterator[bytes]:
    """Yield bodies with several changes, without end; some of them in a frame that is sound."""
    while True:
        changed = bytearray(rng.choice(bodies))
        for _ in range(rng.randint(1, 3)):
            rng.choice(_CHANGES)(rng, changed)
        yield _framed(rng, bytes(changed)) if rng.random() < 0.2 else bytes(changed)


def _framed(rng: random.Random, body: bytes) -> bytes:
    params = zstandard.ZstdCompressionParameters(
        write_content_size=rng.random() < 0.8,
        write_checksum=rng.random() < 0.5,
        window_log=rng.choice((10, 19, 27)),
    )
    return zstandard.ZstdCompressor(compression_params=params).compress(body)


def _turn(rng: random.Random, body: bytearray) -> None:
    if body:
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, body: bytearray) -> None:
    at = rng.randrange(len(body) + 1)
    body[at : at + _MAX_CHANGED_BYTES] = rng.randbytes(len(body[at : at + _MAX_CHANGED_BYTES]))


def _insert(rng: random.Random, body: bytearray) -> None:
    at = rng.randrange(len(body) + 1)
    body[at:at] = rng.randbytes(rng.randint(1, _MAX_CHANGED_BYTES))


def _cut(rng: random.Random, body: bytearray) -> None:
    del body[rng.randrange(len(body) + 1) :]


def _drop(rng: random.Random, body: bytearray) -> None:
    at = rng.randrange(len(body) + 1)
    del body[at : at + rng.randint(1, _MAX_CHANGED_BYTES)]


def _twice(rng: random.Random, body: bytearray) -> None:
    body += body[: rng.randrange(len(body) + 1)]


def _claim(rng: random.Random, body: bytearray) -> None:
    """Let it be a frame that claims another size."""
    body[:4] = b"\x28\xb5\x2f\xfd"
    body[4:13] = b"\xe0" + rng.choice(_SIZES).to_bytes(8, "little")


_CHANGES: tuple[Change, ...] = (_turn, _turn, _overwrite, _insert, _cut, _drop, _twice, _claim)
