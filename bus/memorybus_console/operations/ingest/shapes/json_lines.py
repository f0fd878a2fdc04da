"""Reads JSON from decoded lines: one document, or a value a line; what is no JSON is left out."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from memorybus_console.operations.ingest.refused import RefusedInput, UnreadableInput
from memorybus_console.operations.ingest.shapes.decoding import BYTE_ORDER_MARK
from memorybus_console.operations.ingest.shapes.left_out import LeftOut

_BETWEEN_ITEMS = " \t\r\n,"


class JsonLine(NamedTuple):
    """One JSON value, its place (``file:line``) and its number in the file, from 1."""

    where: str
    number: int
    value: Any


class JsonFile(NamedTuple):
    """The JSON values of a file.

    Attributes:
        lines: the values; those of a list are numbered as its items.
        single: whether the whole file is one object.
    """

    lines: list[JsonLine]
    single: bool


def parse_file(raw: Iterable[bytes], name: str, left_out: LeftOut) -> JsonFile:
    """Parse a file.

    Args:
        raw: its decoded lines; may raise `UnreadableInput`, which ends the file.
        name: its name, for places.
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
    return JsonFile(list(_parse_lines(lines, name, left_out)), single=False)


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


def _parse_lines(lines: Iterable[bytes], name: str, left_out: LeftOut) -> Iterator[JsonLine]:
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
        raise UnreadableInput(f"not JSON we can read: {error}", where) from error
