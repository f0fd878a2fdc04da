"""Reads the records of an export: a list, an object with lists, or a JSON value on each line."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

import msgspec

from memorybus_console.operations.ingest.foreign.model import (
    ForeignError,
    ForeignMemory,
    ParsedExport,
    ParsedRecord,
    Record,
    end_of,
)
from memorybus_console.operations.ingest.refused import RefusedInput
from memorybus_console.operations.ingest.shapes.decoding import decoded_lines
from memorybus_console.operations.ingest.shapes.json_lines import JsonFile, parse_file
from memorybus_console.operations.ingest.shapes.left_out import LeftOut

_INHERITED = (
    "user_id", "user_uuid", "agent_id", "run_id", "thread_id", "thread_uuid", "session_id",
    "created_at",
)  # fmt: skip
"""The fields of an object around records that count for those of them that do not have them."""

_MAX_DEPTH = 8
"""How deep lists of records may lie within each other (G10)."""


class Export(NamedTuple):
    """An export before parsing.

    Attributes:
        data: its bytes; see `decoded_lines`.
        name: the file or the address, for places.
        zone: the zone of times that name none.
    """

    data: bytes
    name: str
    zone: tzinfo

    def parse_json(self, left_out: LeftOut) -> JsonFile:
        """Return the JSON values of the export.

        Raises:
            ForeignError: nothing in it is JSON.
        """
        lines = decoded_lines(io.BufferedReader(io.BytesIO(self.data)), self.name)
        parsed = parse_file(lines, self.name, left_out)
        if not parsed.lines:
            first = next(iter(left_out.named), None)
            raise ForeignError(first.why if first else f"{self.name}: not JSON: it is empty")
        return parsed

    def records(self, lists: Sequence[str], left_out: LeftOut) -> Iterator[Record]:
        """Yield the records of an export.

        The export is a JSON list of records; an object that has them in lists; or a record, or such
        an object, on each line. Other lists beside these are dropped, and counted by their name.

        Args:
            lists: names of the lists that hold records.
            left_out: gets what is no record.

        Raises:
            ForeignError: nothing in it is JSON.
        """
        for line in self.parse_json(left_out).lines:
            for where, value in _objects_of(line.value, line.where, lists, left_out, _MAX_DEPTH):
                yield Record(where, value, self.zone)


def _objects_of(
    value: Any, where: str, lists: Sequence[str], left_out: LeftOut, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a value that hold no lists of others, each with its place."""
    if isinstance(value, list) and depth:
        for number, item in enumerate(value, 1):
            yield from _objects_of(item, f"{where}: item {number}", lists, left_out, depth - 1)
    elif not isinstance(value, dict):
        why = f"expected an object, not {type(value).__name__}"
        left_out.refuse(RefusedInput(where, f"{where}: {why}"))
    elif depth and any(isinstance(value.get(key), list) for key in lists):
        yield from _objects_within(value, where, lists, left_out, depth)
    else:
        yield where, value


def _objects_within(
    value: dict[str, Any], where: str, lists: Sequence[str], left_out: LeftOut, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in an object's lists, with what it says for all of them."""
    around = {name: value[name] for name in _INHERITED if value.get(name) is not None}
    for key, held in value.items():
        if not isinstance(held, list):
            continue
        if key not in lists:
            left_out.drop(key, len(held))
            continue
        for place, item in _objects_of(held, f"{where}: {key}", lists, left_out, depth - 1):
            yield place, item | {n: v for n, v in around.items() if item.get(n) is None}


def parse_records(
    records: Iterable[Record], read: Callable[[Record], ParsedRecord], left_out: LeftOut
) -> ParsedExport:
    """Parse every record; one that is refused is reported, and the others are used.

    Args:
        records: the records of a source.
        read: parses one of them; raises `ForeignError`.
        left_out: gets those that are refused.

    Raises:
        ForeignError: there is no record, and something that should be one.
    """
    done, count = ParsedExport(left_out=left_out), 0
    for count, record in enumerate(records, 1):  # noqa: B007  counted for below
        try:
            parsed = _with_end(read(record), record)
        except ForeignError as error:
            left_out.refuse(RefusedInput(record.where, str(error)))
            continue
        if parsed is None or not parsed.text.strip():
            done.skipped += 1
        elif isinstance(parsed, ForeignMemory):
            done.memories.append(parsed)
        else:
            done.messages.append(parsed)
    if not count and left_out.named:
        raise ForeignError(left_out.named[0].why)
    return done


def _with_end(parsed: ParsedRecord, record: Record) -> ParsedRecord:
    """Return a record with the end of its validity, if it is a memory and names one."""
    if not isinstance(parsed, ForeignMemory) or parsed.until is not None:
        return parsed
    return msgspec.structs.replace(parsed, until=end_of(record))


def parse_export(
    export: Export, lists: Sequence[str], read: Callable[[Record], ParsedRecord]
) -> ParsedExport:
    """Parse every record of an export; see `Export.records` and `parse_records`."""
    left_out = LeftOut()
    return parse_records(export.records(lists, left_out), read, left_out)
