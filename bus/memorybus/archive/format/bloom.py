"""Bloom filters of words: a few bytes per segment tell which sessions it can hold; pure.

Layout, for other readers: a bit array, base64; the least significant bit of a byte comes first.
A word sets these bits: the BLAKE2b digest of its UTF-8 bytes has 16 bytes, the two little-endian
64-bit halves a and b; bit i is (a + i * b) mod 2**64 mod the number of bits, for i below `HASHES`.
"""

import base64
import hashlib
from collections.abc import Collection, Iterable

HASHES = 7
BITS_A_WORD = 10  # ten bits for each word and seven hashes give one false positive in a hundred
MAX_BYTES = 8_192  # a filter of more than 6,500 words is less exact
_MIN_BYTES = 8
_UINT64_MASK = (1 << 64) - 1


def build_filter(words: Collection[str]) -> str:
    """Return the filter of some words, base64; "" for no words."""
    size = min(MAX_BYTES, max(_MIN_BYTES, -(-len(words) * BITS_A_WORD // 8))) if words else 0
    array = bytearray(size)
    for word in words:
        for bit in _bits_of(word, size * 8):
            array[bit >> 3] |= 1 << (bit & 7)
    return base64.b64encode(array).decode()


def may_hold(text: str, words: Iterable[str]) -> bool:
    """Return whether a filter may hold one of `words`; False is certain."""
    try:
        array = base64.b64decode(text, validate=True)
    except ValueError:
        return True
    return bool(array) and any(
        all(array[bit >> 3] & (1 << (bit & 7)) for bit in _bits_of(word, len(array) * 8))
        for word in words
    )


def _bits_of(word: str, bits: int) -> Iterable[int]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    return (((first + i * step) & _UINT64_MASK) % bits for i in range(HASHES))
