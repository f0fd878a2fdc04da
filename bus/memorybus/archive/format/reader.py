"""Reads a segment's file by group of rows, and only the columns that are asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO

import msgspec

from memorybus.archive.format import columns
from memorybus.archive.format.figures import (
    COUNTED_COLUMNS,
    FIGURES,
    FIGURES_VERSION,
    with_figures,
)
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.parquet import (
    COLUMNS,
    METADATA_KEY,
    TEXT_COLUMNS,
    GroupSummary,
    SegmentMetadata,
    SegmentRow,
    schema_of,
)
from memorybus.archive.objects.store import missing_extra_error
from memorybus.errors import ArchiveDamaged
from memorybus.log.entry import EntryMoment, parse_entry_id
from memorybus.msgspec_types import prepared

CONTENT_COLUMNS = ("kind", "omitted", "envelope")  # the columns from which an event is decoded
_PLAIN_VALUES: Mapping[str, str] = {"kind": "e", "omitted": ""}
"""The values of these columns in a plain group, where they are not read."""


@contextmanager
def naming_file(where: str) -> Iterator[None]:
    """Turn errors of the parser and the disk within the block into one that names the file."""
    try:
        yield
    except _parse_errors() as error:
        message = " ".join(str(error).split())[:200]
        raise ArchiveDamaged(
            f"{where}: cannot be read ({message}); restore the file from a backup"
        ) from error


def _parse_errors() -> tuple[type[Exception], ...]:
    """Return the errors that a parser may raise for bytes that we did not write."""
    parse_errors = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
    ours = (*parse_errors, msgspec.MsgspecError, OSError)
    try:
        from pyarrow import ArrowException
    except ImportError:  # without pyarrow its own error is raised, which says what is missing
        return ours
    return (*ours, ArrowException)


class Group:
    """A group of rows in memory, with the columns that were asked for."""

    def __init__(self, cut: GroupSummary, table: Any) -> None:
        if not 0 < cut.count == table.num_rows:
            raise ValueError(f"{table.num_rows} rows where {cut.count} were sealed")
        for name in table.column_names:
            if name != "envelope" and table.column(name).null_count:
                raise ValueError(f"column {name} has no value in some rows")
        self.summary = cut  # what is known of it without reading it
        # the ids of the entries
        self.entries = columns.Cells(table.column("entry"), columns.ascii_text)
        self.numbers: Sequence[int] = range(cut.n, cut.n + cut.count)  # their dense numbers
        if not cut.is_plain:
            self.numbers = columns.integers_of(table.column("n"), "q")
        self.table = table  # the other columns (`pyarrow.Table`)
        self._words: dict[str, list[str]] = {}

    def words(self, name: str) -> list[str]:
        if self.summary.is_plain and name in _PLAIN_VALUES:
            return [_PLAIN_VALUES[name]] * self.summary.count
        if name not in self._words:
            known, rows = columns.dictionary_of(self.table.column(name))
            one = len(known) == 1
            self._words[name] = known * len(rows) if one else [known[row] for row in rows]
        return self._words[name]

    def word_codes(self, name: str) -> tuple[list[str], list[int]]:
        return columns.dictionary_of(self.table.column(name))

    @cached_property
    def envelopes(self) -> columns.Cells:
        """The column of envelopes; one that was not kept is empty."""
        return columns.Cells(self.table.column("envelope"), memoryview)


class SegmentReader:
    """One open segment. Belongs to one thread."""

    def __init__(self, file: BinaryIO, segment: Segment, where: str) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise missing_extra_error(error) from error
        self.segment = segment  # what the manifest says of it
        self.where = where  # its full name, for messages
        self._file = file
        with naming_file(where):
            self._parquet: Any = self._open_parquet(parquet)
            _check_columns(pa, self._parquet.schema_arrow)
            self.metadata = self._read_metadata()  # what the file says of itself
            self._starts = [parse_entry_id(cut.entry) for cut in self.metadata.groups]
        if (problem := _describe_mismatch(self.metadata, segment)) is not None:
            raise ArchiveDamaged(f"{where}: {problem}; restore the file from a backup")

    def _open_parquet(self, parquet: Any) -> Any:
        return parquet.ParquetFile(
            self._file,
            read_dictionary=list(TEXT_COLUMNS),
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _read_metadata(self) -> SegmentMetadata:
        meta = self._parquet.schema_arrow.metadata or {}
        return msgspec.json.decode(meta.get(METADATA_KEY, b""), type=prepared(SegmentMetadata))

    @property
    def groups(self) -> int:
        return len(self._starts)

    def group_after(self, after: EntryMoment) -> int:
        """Return the number of the group that holds the first row after a moment."""
        return max(0, bisect_right(self._starts, after) - 1)

    def group_before(self, before: EntryMoment) -> int:
        """Return the number of the group that holds the last row before a moment."""
        return max(0, bisect_left(self._starts, before) - 1)

    def group(self, index: int, names: Sequence[str] = ()) -> Group:
        with naming_file(self.where):
            cut = self.metadata.groups[index]
            wanted = _columns_to_read(cut, names)
            table = self._parquet.read_row_group(index, columns=wanted, use_threads=False)
            return Group(cut, table)

    def counted(self) -> Any:
        """Return what insights count of all rows (`pyarrow.Table`), a group decoded at a time."""
        import pyarrow as pa

        is_present = self.segment.figures == FIGURES_VERSION
        names = [*COUNTED_COLUMNS, FIGURES if is_present else "envelope"]
        with naming_file(self.where):
            groups = (
                self._parquet.read_row_group(index, columns=names, use_threads=False)
                for index in range(self.groups)
            )
            return pa.concat_tables(
                group if is_present else with_figures(pa, group) for group in groups
            )

    def close(self) -> None:
        self._file.close()


def _check_columns(pa: Any, found: Any) -> None:
    for field in schema_of(pa):
        kind = pa.dictionary(pa.int32(), field.type) if field.name in TEXT_COLUMNS else field.type
        if (other := found.field(field.name).type) != kind:
            raise ValueError(f"column {field.name} is {other}, not {kind}")


def _columns_to_read(cut: GroupSummary, names: Sequence[str]) -> list[str]:
    """Return the columns to read of a group; those with known values in a plain group are not."""
    plain = ["entry", *(name for name in names if name not in ("n", "kind", "omitted", "entry"))]
    return plain if cut.is_plain else ["n", "kind", "omitted", *plain]


def _describe_mismatch(inside: SegmentMetadata, segment: Segment) -> str | None:
    """Describe what a file holds if it is not the segment that its name says; None if it is."""
    if inside.of != segment.of:
        of = inside.of
        return f"holds a segment of partition {of.partition} of log {of.log} ({of.namespace})"
    same = (inside.first, inside.last, inside.count) == (segment.first, segment.last, segment.count)
    held = f"{inside.first.n} to {inside.last.n}"
    return None if same else f"holds the events {held}, not {segment.first.n} to {segment.last.n}"


def rows_of(reader: SegmentReader) -> Iterator[SegmentRow]:
    """Yield a segment's rows as they were written; one group at a time is in memory."""
    for index in range(reader.groups):
        group = reader.group(index, COLUMNS)
        with naming_file(reader.where):
            cells = [_cells(group, name) for name in COLUMNS]
        yield from map(SegmentRow, *cells)


def _cells(group: Group, name: str) -> Sequence[Any]:
    if name in TEXT_COLUMNS:
        return group.words(name)
    if name in ("n", "entry"):
        return (
            group.numbers
            if name == "n"
            else list(group.entries.cells_in(range(group.summary.count)))
        )
    column = group.table.column(name)
    if name == "at":
        return columns.integers_of(column, "q")
    if name == "id":
        return [bytes.fromhex(digits) for digits in columns.hex_ids(column)]
    found: list[Any] = column.to_pylist()
    return found
