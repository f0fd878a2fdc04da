"""Sends and receives frames on a stream socket: four bytes of length, then a JSON object."""

import json
import socket
import struct
from typing import Any, Final

VERSION: Final = 3  # the version of the protocol, which must be the same in both processes

MAX_FRAME_BYTES: Final = 64 << 20  # the most bytes of one frame (G10)

OWNER_KEY: Final = "memorybus"
"""Our own key in the session of a request, for its owner; it is not passed to plugins."""

CWD: Final = "cwd"
"""The key of the host's working directory, which is not passed to plugins, either."""

MIXED: Final = "Mixed"
"""The meaning of a refusal because the plugin would mix the memories of owners."""

_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """What was received is not a frame, or a frame is too long."""


def send(connection: socket.socket, value: dict[str, Any]) -> None:
    """Send one object.

    Raises:
        FrameError: the object is too long, or cannot be written as JSON.
        OSError: the other end has closed, or is too slow for the socket's time-out.
    """
    try:
        body = json.dumps(value, ensure_ascii=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"{len(body)} bytes are more than a frame's {MAX_FRAME_BYTES}")
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Receive one object; None if the other end has closed.

    Raises:
        FrameError: what was received is not a frame.
        OSError: nothing came within the socket's time-out, or the connection broke.
    """
    head = _receive_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_BYTES:
        raise FrameError(f"a frame of {length} bytes is announced")
    body = _receive_exactly(connection, length)
    if body is None:
        return None
    return _decode_object(body)


def _decode_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise FrameError("a frame holds an object")
    return value


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    """Return `size` bytes; None if the stream ends before that."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
