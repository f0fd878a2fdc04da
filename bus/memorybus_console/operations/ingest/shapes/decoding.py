"""Decodes files: plain or gzip, UTF-8 with or without a byte order mark, UTF-16 or UTF-32."""

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memorybus_console.operations.ingest.refused import UnreadableInput

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LARGEST_UNPACKED = 256 << 20
"""The most bytes of an unpacked gzip file (G10): a small file may unpack to a whole disk."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_HEAD_BYTES = 4


def decoded_lines(file: io.BufferedReader, name: str, longest: int = -1) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, each with its end, whatever the file is written in.

    Characters that UTF-16 does not have become U+FFFD. Bytes that UTF-8 does not have stay, so that
    only their line cannot be read.

    Args:
        file: the file, at its beginning.
        name: its name, for errors.
        longest: the most bytes of a line that are read at once; -1 for all of it.

    Raises:
        UnreadableInput: the file is a ZIP archive; or the gzip file is damaged or too large, after
            the lines before the damage.
    """
    head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if head == _ZIP:
        raise UnreadableInput("a ZIP archive; unpack it and name the JSON file in it", name)
    if not head.startswith(_GZIP):
        yield from _utf8_lines(file, longest)
        return
    try:
        yield from _utf8_lines(io.BufferedReader(_Unpacked(file, name)), longest)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableInput(f"the gzip file is damaged: {error}", name) from error


def _utf8_lines(file: io.BufferedReader, longest: int) -> Iterator[bytes]:
    encoding = json.detect_encoding(file.peek(_HEAD_BYTES)[:_HEAD_BYTES])
    if encoding.startswith("utf-8"):
        yield from iter(lambda: file.readline(longest), b"")
        return
    with io.TextIOWrapper(file, encoding, errors="replace", newline="\n") as text:
        yield from (line.encode() for line in iter(lambda: text.readline(longest), ""))


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, up to `LARGEST_UNPACKED` bytes."""

    def __init__(self, file: io.BufferedReader, name: str) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self._name = name
        self._left = LARGEST_UNPACKED

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        data = self._file.read1(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableInput(
                f"it unpacks to more than {LARGEST_UNPACKED >> 20} MiB; unpack it with gunzip and "
                "split it",
                self._name,
            )
        view[: len(data)] = data
        return len(data)
