"""The rows that insights count: sealed segments where they lie, and the log's tail from Redis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from memorybus.archive.archive import Archive
from memorybus.archive.format.figures import COUNTED_COLUMNS, with_figures
from memorybus.errors import ArchiveError
from memorybus.events import Omitted, UnknownEvent
from memorybus.history.history import History
from memorybus.log.entry import LoggedEvent, Place
from memorybus.log.stream import START

if TYPE_CHECKING:
    import pyarrow as pa

_PATTERN = frozenset("*?[")
"""Characters that DuckDB takes for a pattern, so that a file with them is read without it."""

_PAGE = 1_000
_TABLE_ROWS = 10_000
"""Rows of the tail that are decoded at once (G10)."""


class CountableRows(msgspec.Struct, frozen=True):
    """Where the rows of the history are.

    Attributes:
        files: Parquet files on this disk.
        tables: rows in memory (`pyarrow.Table`), with the same columns.
        gaps: what could not be read, in words.
    """

    files: list[str]
    tables: list[pa.Table]
    gaps: list[str]


def find_rows(history: History, archive: Archive | None, since: int) -> CountableRows:
    """Return the rows since a time; Redis is asked only for what is not sealed yet.

    Raises:
        LogUnavailable: Redis is away.
        ArchiveUnavailable: the archive cannot be reached.
    """
    rows = CountableRows([], [], [])
    for partition in range(history.log.partitions):
        end = _add_sealed(rows, archive, partition, since) if archive else None
        rows.tables.extend(_tables(_tail(history, partition, end, rows.gaps)))
    return rows


def _add_sealed(rows: CountableRows, archive: Archive, partition: int, since: int) -> Place | None:
    """Add a partition's sealed rows, and return where they end."""
    segments = archive.segments(partition)
    try:
        for segment in archive.countable(partition, since):
            if segment.path and _PATTERN.isdisjoint(segment.path):
                rows.files.append(segment.path)
            else:
                rows.tables.append(segment.load())
    except ArchiveError as error:
        rows.gaps.append(str(error))
    return segments[-1].last if segments else None


def _tail(
    history: History, partition: int, end: Place | None, gaps: list[str]
) -> Iterator[LoggedEvent]:
    """Yield the events behind the last sealed one."""
    at, missing = end or Place(START, 0), 0
    while events := history.read(partition, at.entry, _PAGE, after_n=at.n).events:
        first, last = events[0].position, events[-1].position
        missing += max(0, first.n - at.n - 1)
        yield from events
        at = Place(last.entry, last.n)
    if missing:
        gaps.append(f"{missing} events of partition {partition} are in neither log nor archive")


def _tables(events: Iterator[LoggedEvent]) -> Iterator[pa.Table]:
    batch: list[LoggedEvent] = []
    for event in events:
        batch.append(event)
        if len(batch) == _TABLE_ROWS:
            yield _table(batch)
            batch = []
    if batch:
        yield _table(batch)


def _table(events: Sequence[LoggedEvent]) -> pa.Table:
    """Return events as rows; the columns are those of a segment."""
    import pyarrow as pa

    rows = zip(*map(_row, events), strict=True)
    kinds = {"id": pa.uuid(), "at": pa.timestamp("ms", "UTC"), "envelope": pa.binary()}
    names = (*COUNTED_COLUMNS, "envelope")
    arrays = [
        pa.array(values, kinds.get(name, pa.string()))
        for name, values in zip(names, rows, strict=True)
    ]
    return with_figures(pa, pa.Table.from_arrays(arrays, names=list(names)))


def _row(logged: LoggedEvent) -> tuple[object, ...]:
    envelope = logged.envelope
    scope, session, event = envelope.scope, envelope.session, envelope.event
    return (
        bytes.fromhex(envelope.id),
        "r" if logged.resent else "e",
        event.name if isinstance(event, UnknownEvent) else type(event).__name__,
        scope.agent,
        scope.user,
        scope.workspace,
        scope.platform,
        session.id,
        session.root,
        envelope.at,
        event.why if isinstance(event, Omitted) else "",
        msgspec.msgpack.encode(envelope),
    )
