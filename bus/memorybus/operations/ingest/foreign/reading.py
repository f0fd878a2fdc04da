"""Reads the records of an export: a list, an object with lists, or a JSON value on each line."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from memorybus.operations.ingest.foreign.model import ForeignError, Record

_BOM = b"\xef\xbb\xbf"


def parse_json(data: bytes) -> Any:
    """Return a whole export, or a line of it, as one JSON value.

    Raises:
        ForeignError: it is not JSON.
    """
    try:
        return json.loads(data.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        raise ForeignError(f"not JSON we can read: {error}") from error


def read_records(data: bytes, name: str, lists: Sequence[str]) -> Iterator[Record]:
    """Yield the records of an export.

    Args:
        data: a JSON list of records; an object that has them in lists; or a record, or such an
            object, on each line.
        name: the file's name, for places.
        lists: names of the lists that hold records.

    Raises:
        ForeignError: the file or a line of it is not JSON, or a record is no object.
    """
    try:
        whole = parse_json(data)
    except ForeignError:
        yield from _records_of_lines(data, name, lists)
        return
    yield from _records_of_value(whole, name, lists)


def _records_of_lines(data: bytes, name: str, lists: Sequence[str]) -> Iterator[Record]:
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            value = parse_json(line)
        except ForeignError as error:
            raise ForeignError(error.why, where) from error
        yield from _records_of_value(value, where, lists)


def _records_of_value(value: Any, where: str, lists: Sequence[str]) -> Iterator[Record]:
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            yield _check_record(one, f"{where}: item {number}")
        return
    found = [key for key in lists if isinstance(value, dict) and isinstance(value.get(key), list)]
    for key in found:
        yield from _records_of_value(value[key], f"{where}: {key}", ())
    if not found:
        yield _check_record(value, where)


def _check_record(value: Any, where: str) -> Record:
    if not isinstance(value, dict):
        raise ForeignError(f"expected an object, not {type(value).__name__}", where)
    return Record(where, value)
