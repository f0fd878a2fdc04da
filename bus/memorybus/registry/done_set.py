"""The done-set: the events above a lane's checkpoint that are done, as a number and a bitmap."""

_HEADER = 8


def encode_done_set(n: int, done: int) -> bytes:
    """Return a done-set as bytes: the checkpoint's number and the bitmap, both little-endian.

    Args:
        n: the checkpoint's dense number.
        done: bit i says that n + 1 + i is done.
    """
    if not done:
        return b""
    return n.to_bytes(_HEADER, "little") + done.to_bytes((done.bit_length() + 7) // 8, "little")


def decode_done_above(done: bytes, n: int) -> int:
    """Return a stored done-set as a bitmap above `n`.

    The checkpoint may have moved since it was stored; the numbers still mean the same.
    """
    if len(done) <= _HEADER:
        return 0
    base = int.from_bytes(done[:_HEADER], "little")
    bits = int.from_bytes(done[_HEADER:], "little")
    return bits >> (n - base) if n >= base else 0
