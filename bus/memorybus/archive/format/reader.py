"""Reading a segment's file: by group of rows, and only the columns asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO

import msgspec

from memorybus.archive.format import columns
from memorybus.archive.format.manifest import Segment
from memorybus.archive.format.parquet import (
    COLUMNS,
    META,
    WORDS,
    Cut,
    Inside,
    SegmentRow,
    schema_of,
)
from memorybus.archive.objects.store import missing
from memorybus.errors import ArchiveDamaged
from memorybus.log.entry import parse_entry_id

CONTENT = ("kind", "omitted", "envelope")
"""The columns that an event is made of."""

_PLAIN: Mapping[str, str] = {"kind": "e", "omitted": ""}
"""What these columns hold in a plain group, where they are not read."""


@contextmanager
def naming_file(where: str) -> Iterator[None]:
    """Name the file in whatever goes wrong with its bytes.

    Args:
        where: its full name.

    Raises:
        ArchiveDamaged: in place of the errors of a parser, and of the disk.
    """
    try:
        yield
    except _broken() as error:
        said = " ".join(str(error).split())[:200]
        raise ArchiveDamaged(
            f"{where}: cannot be read ({said}); restore the file from a backup"
        ) from error


def _broken() -> tuple[type[Exception], ...]:
    """Return what bytes that we did not write bring out of a parser: errors of any kind."""
    known = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
    ours = (*known, msgspec.MsgspecError, OSError)
    try:
        from pyarrow import ArrowException
    except ImportError:  # what goes wrong is just that, and is told as it is
        return ours
    return (*ours, ArrowException)


class Group:
    """Some hundred rows in memory; columns that nobody asked for are not read.

    Attributes:
        cut: what they are like.
        entries: ids of entries.
        numbers: their dense numbers.
        table: the rest, by column (`pyarrow.Table`).
    """

    def __init__(self, cut: Cut, table: Any) -> None:
        """Take the columns out of a table.

        Raises:
            ValueError: it has not the rows that were sealed, or no value where there is one.
        """
        if not 0 < cut.count == table.num_rows:
            raise ValueError(f"{table.num_rows} rows where {cut.count} were sealed")
        for name in table.column_names:
            if name != "envelope" and table.column(name).null_count:
                raise ValueError(f"column {name} has no value in some rows")
        self.cut = cut
        self.entries = columns.Cells(table.column("entry"), columns.ascii_text)
        self.numbers: Sequence[int] = range(cut.n, cut.n + cut.count)
        if not cut.is_plain:
            self.numbers = columns.numbers(table.column("n"), "q")
        self.table = table
        self._words: dict[str, list[str]] = {}

    def words(self, name: str) -> list[str]:
        """Return a column of repeating texts."""
        if self.cut.is_plain and name in _PLAIN:
            return [_PLAIN[name]] * self.cut.count
        if name not in self._words:
            known, rows = columns.words(self.table.column(name))
            one = len(known) == 1
            self._words[name] = known * len(rows) if one else [known[row] for row in rows]
        return self._words[name]

    def coded(self, name: str) -> tuple[list[str], list[int]]:
        """Return a column of repeating texts as its words, and the number of each row's."""
        return columns.words(self.table.column(name))

    @cached_property
    def envelopes(self) -> columns.Cells:
        """The column of envelopes; what is left out is empty."""
        return columns.Cells(self.table.column("envelope"), memoryview)


class SegmentReader:
    """One open segment. Belongs to one thread.

    Every method raises `ArchiveDamaged` for what cannot be read.

    Attributes:
        segment: what the manifest says of it.
        where: its full name, for messages.
        inside: what the file says of itself.
    """

    def __init__(self, file: BinaryIO, segment: Segment, where: str) -> None:
        """Read the file's metadata.

        Args:
            file: the segment.
            segment: what the manifest says of it.
            where: its full name, for messages.

        Raises:
            ArchiveDamaged: the file is no segment, or another one.
            ArchiveUnavailable: pyarrow is not installed.
        """
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise missing(error) from error
        self.segment = segment
        self.where = where
        self._file = file
        with naming_file(where):
            self._parquet: Any = self._opened(parquet)
            _check_columns(pa, self._parquet.schema_arrow)
            self.inside = self._inside()
            self._starts = [parse_entry_id(cut.entry) for cut in self.inside.groups]
        if (problem := _other(self.inside, segment)) is not None:
            raise ArchiveDamaged(f"{where}: {problem}; restore the file from a backup")

    def _opened(self, parquet: Any) -> Any:
        return parquet.ParquetFile(
            self._file,
            read_dictionary=list(WORDS),
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _inside(self) -> Inside:
        meta = self._parquet.schema_arrow.metadata or {}
        return msgspec.json.decode(meta.get(META, b""), type=Inside)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self._starts)

    def group_after(self, after: tuple[int, int]) -> int:
        """Return the number of the group that holds the first row after a moment."""
        return max(0, bisect_right(self._starts, after) - 1)

    def group_before(self, before: tuple[int, int]) -> int:
        """Return the number of the group that holds the last row before a moment."""
        return max(0, bisect_left(self._starts, before) - 1)

    def group(self, index: int, names: Sequence[str] = ()) -> Group:
        """Read a group: entries, numbers, and the named columns."""
        with naming_file(self.where):
            cut = self.inside.groups[index]
            wanted = _columns(cut, names)
            table = self._parquet.read_row_group(index, columns=wanted, use_threads=False)
            return Group(cut, table)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _check_columns(pa: Any, found: Any) -> None:
    """Make sure that a file has a segment's columns; others may be there, too.

    Raises:
        KeyError: one is missing.
        ValueError: one holds something else.
    """
    for field in schema_of(pa):
        kind = pa.dictionary(pa.int32(), field.type) if field.name in WORDS else field.type
        if (other := found.field(field.name).type) != kind:
            raise ValueError(f"column {field.name} is {other}, not {kind}")


def _columns(cut: Cut, names: Sequence[str]) -> list[str]:
    """Return what to read of a group: what a plain one need not be read for is known."""
    plain = ["entry", *(name for name in names if name not in ("n", "kind", "omitted", "entry"))]
    return plain if cut.is_plain else ["n", "kind", "omitted", *plain]


def _other(inside: Inside, segment: Segment) -> str | None:
    """Say what a file holds if it is not the segment it stands for."""
    if inside.of != segment.of:
        of = inside.of
        return f"holds a segment of partition {of.partition} of log {of.log} ({of.namespace})"
    same = (inside.first, inside.last, inside.count) == (segment.first, segment.last, segment.count)
    held = f"{inside.first.n} to {inside.last.n}"
    return None if same else f"holds the events {held}, not {segment.first.n} to {segment.last.n}"


def rows_of(reader: SegmentReader) -> Iterator[SegmentRow]:
    """Yield a segment's rows as they were written; in memory is one group.

    Raises:
        ArchiveDamaged: they cannot be read.
    """
    for index in range(reader.groups):
        group = reader.group(index, COLUMNS)
        with naming_file(reader.where):
            cells = [_cells(group, name) for name in COLUMNS]
        yield from map(SegmentRow, *cells)


def _cells(group: Group, name: str) -> Sequence[Any]:
    if name in WORDS:
        return group.words(name)
    if name in ("n", "entry"):
        return group.numbers if name == "n" else list(group.entries.some(range(group.cut.count)))
    column = group.table.column(name)
    if name == "at":
        return columns.numbers(column, "q")
    if name == "id":
        return [bytes.fromhex(one) for one in columns.hex_ids(column)]
    found: list[Any] = column.to_pylist()
    return found
