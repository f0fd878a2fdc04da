"""Reads the JSON values of a file, whatever it is packed in; what is no JSON is left out.

A file is plain or gzip, in UTF-8 with or without a byte order mark, UTF-16 or UTF-32; one document,
or a value a line.
"""

import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from memorybus_console.operations.ingest.report import LeftOut, RefusedInput, UnreadableInput

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LARGEST_UNPACKED = 256 << 20
"""The most bytes of an unpacked gzip file (G10): a small file may unpack to a whole disk."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_MEMBERS = 10_000  # the most files that are read in a ZIP archive (G10)

_MOST_PACKED = 200
"""How many times as large as packed a file of an archive may be, if it is larger than a MiB."""

_JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
_CHATS = "conversations"
"""How the files with the conversations begin in the export of a chat; others have settings."""

_DAMAGED = (
    OSError, EOFError, UnicodeError, RuntimeError, NotImplementedError, zipfile.BadZipFile,
    zlib.error, lzma.LZMAError,
)  # fmt: skip
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_HEAD_BYTES = 4


class Member(NamedTuple):
    """A file to read: alone, or one of a ZIP archive."""

    file: io.BufferedReader
    name: str
    stem: str


def members_of(file: io.BufferedReader, name: str, stem: str) -> Iterator[Member]:
    """Yield a file, or the JSON files in a ZIP archive; their names are no paths, only words.

    Raises:
        UnreadableInput: the archive is damaged, encrypted or too large, or has no JSON file.
    """
    if file.peek(_HEAD_BYTES)[:_HEAD_BYTES] != _ZIP:
        yield Member(file, name, stem)
        return
    if not file.seekable():
        raise UnreadableInput("a ZIP archive cannot be read from a pipe; name the file", name)
    taken: Counter[str] = Counter()
    try:
        with zipfile.ZipFile(file) as archive:
            for info in _json_members(archive, name):
                path = PurePosixPath(info.filename)
                place = f"{name}: {path.name}"
                taken[path.stem] += 1
                own = path.stem if taken[path.stem] == 1 else f"{path.stem}-{taken[path.stem]}"
                with archive.open(info) as packed:
                    file = io.BufferedReader(cast("io.RawIOBase", packed))
                    if file.peek(_HEAD_BYTES).startswith(_GZIP):  # else each has a bound of its own
                        raise UnreadableInput("a gzip file in a ZIP archive; unpack it", place)
                    yield Member(file, place, f"{stem}:{own}")
    except _DAMAGED as error:
        raise UnreadableInput(f"the ZIP archive is damaged or encrypted: {error}", name) from error


def _json_members(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    """Return the files of an archive that hold the conversations."""
    paths = {info: PurePosixPath(info.filename) for info in archive.infolist()}
    members = [
        info
        for info, path in paths.items()
        if path.suffix in _JSON_ENDINGS and not path.name.startswith(".")
        if "__MACOSX" not in path.parts
    ]
    chats = [info for info in members if paths[info].name.startswith(_CHATS)]
    chosen = chats or members
    if not chosen:
        held = ", ".join(repr(str(path)[:40]) for path in list(paths.values())[:3])
        raise UnreadableInput(
            f"a ZIP archive without a JSON file; it has {held or 'nothing'}", name
        )
    size = sum(info.file_size for info in chosen)
    if size > LARGEST_UNPACKED or len(chosen) > MAX_MEMBERS or any(map(_is_bomb, chosen)):
        raise UnreadableInput(
            f"it unpacks to {size >> 20} MiB in {len(chosen)} files, which is too much or packed "
            f"too densely; unpack it and name the JSON files in it",
            name,
        )
    return chosen


def _is_bomb(info: zipfile.ZipInfo) -> bool:
    return info.file_size > max(1 << 20, _MOST_PACKED * info.compress_size)


def decoded_lines(file: io.BufferedReader, name: str, longest: int = -1) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, each with its end, whatever the file is written in.

    Characters that UTF-16 does not have become U+FFFD. Bytes that UTF-8 does not have stay, so that
    only their line cannot be read.

    Args:
        longest: the most bytes of a line that are read at once; -1 for all of it.

    Raises:
        UnreadableInput: the file is a ZIP archive; or the gzip file is damaged or too large, after
            the lines before the damage.
    """
    try:
        head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        if head == _ZIP:
            raise UnreadableInput("a ZIP archive; unpack it and name the JSON file in it", name)
        if head.startswith(_GZIP):
            file = io.BufferedReader(cast("io.RawIOBase", _Unpacked(file, name)))
        yield from _utf8_lines(file, longest)
    except _DAMAGED as error:
        raise UnreadableInput(f"it is damaged or cannot be read: {error}", name) from error


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


_BETWEEN_ITEMS = " \t\r\n,"


class JsonLine(NamedTuple):
    """One JSON value, its place (``file:line``) and its number in the file, from 1."""

    where: str
    number: int
    value: Any


class JsonFile(NamedTuple):
    """The JSON values of a file."""

    lines: list[JsonLine]  # the values; those of a list are numbered as its items
    single: bool


def parse_file(raw: Iterable[bytes], name: str, left_out: LeftOut) -> JsonFile:
    """Parse a file.

    Args:
        raw: its decoded lines; may raise `UnreadableInput`, which ends the file.
        left_out: gets the lines that cannot be read.
    """
    lines = list(_readable(raw, name, left_out))
    whole = _json_of(b"".join(lines))
    if isinstance(whole, dict):
        return JsonFile([JsonLine(f"{name}:1", 1, whole)], single=True)
    if isinstance(whole, list):
        return JsonFile(_number_items(whole, name), single=False)
    if len(lines) > 1 and lines[0].removeprefix(BYTE_ORDER_MARK).strip() == b"[":
        return JsonFile(list(_items_of_torn_list(lines, name, left_out)), single=False)
    return JsonFile(list(parse_lines(lines, name, left_out)), single=False)


def _readable(raw: Iterable[bytes], name: str, left_out: LeftOut) -> Iterator[bytes]:
    try:
        yield from raw
    except UnreadableInput as error:
        left_out.refuse(RefusedInput.unreadable(name, error))


def _json_of(data: bytes) -> Any:
    """Return the data as one JSON value; None if it is none."""
    try:
        return json.loads(data.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return None


def _number_items(items: Iterable[Any], name: str) -> list[JsonLine]:
    return [JsonLine(f"{name}: item {index}", index, value) for index, value in enumerate(items, 1)]


def _items_of_torn_list(lines: list[bytes], name: str, left_out: LeftOut) -> Iterator[JsonLine]:
    """Yield the items of a list over several lines before the place where it is damaged."""
    text = b"".join(lines).decode("utf-8", "replace").removeprefix("\ufeff")
    decoder, at, number = json.JSONDecoder(), text.index("[") + 1, 0
    while True:
        while text[at : at + 1] in _BETWEEN_ITEMS and at < len(text):
            at += 1
        number += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            where = f"{name}:{text.count(chr(10), 0, at) + 1}"
            why = f"not JSON from here on: {error}"
            left_out.refuse(RefusedInput.unreadable(name, UnreadableInput(why, where)))
            return
        yield JsonLine(f"{name}: item {number}", number, value)


def parse_lines(lines: Iterable[bytes], name: str, left_out: LeftOut) -> Iterator[JsonLine]:
    """Yield the value of each line, numbered from 1; see `parse_file`."""
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if line.strip():
            try:
                yield JsonLine(where, number, _parse_line(line, where))
            except UnreadableInput as error:
                left_out.refuse(RefusedInput.unreadable(name, error))


def _parse_line(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.removeprefix(BYTE_ORDER_MARK).decode())
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"not UTF-8 (byte {error.start + 1} of the line)", where) from error
    except json.JSONDecodeError as error:
        raise UnreadableInput(f"not JSON: {error.msg} (column {error.colno})", where) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"not JSON that can be read: {error}", where) from error
