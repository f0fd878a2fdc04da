"""Reads the records of an export: a list, an object with lists, or a JSON value on each line."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

import msgspec

from memorybus.operations.ingest.foreign.model import (
    ForeignError,
    ForeignMemory,
    ParsedExport,
    ParsedRecord,
    Record,
    end_of,
)
from memorybus.operations.ingest.refused import RefusedInput
from memorybus.operations.ingest.shapes.decoding import decoded_lines
from memorybus.operations.ingest.shapes.json_lines import JsonFile, parse_file
from memorybus.operations.ingest.shapes.left_out import LeftOut


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
            yield from self._records_of(line.value, line.where, lists, left_out)

    def _records_of(
        self, value: Any, where: str, lists: Sequence[str], left_out: LeftOut
    ) -> Iterator[Record]:
        if isinstance(value, list):
            for number, item in enumerate(value, 1):
                yield from self._records_of(item, f"{where}: item {number}", (), left_out)
        elif not isinstance(value, dict):
            why = f"expected an object, not {type(value).__name__}"
            left_out.refuse(RefusedInput(where, f"{where}: {why}"))
        elif held := [key for key in lists if isinstance(value.get(key), list)]:
            for key in held:
                yield from self._records_of(value[key], f"{where}: {key}", (), left_out)
            for key, other in value.items():
                if key not in held and isinstance(other, list):
                    left_out.drop(key, len(other))
        else:
            yield Record(where, value, self.zone)


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
