"""Segments: the sealed entries of a partition as Parquet files, which any engine can query.

A row has a column for each value that a query looks at, and the envelope as uncompressed msgpack.
An entry that cannot be decoded keeps its raw fields.
"""

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from memorybus.archive.format import bloom
from memorybus.archive.format.figures import (
    FIGURES,
    FIGURES_VERSION,
    figures_array,
    figures_type,
)
from memorybus.archive.format.manifest import (
    FORMAT,
    NO_RETENTION_MARK,
    LogPartition,
    RetentionMark,
    Segment,
)
from memorybus.archive.objects.store import missing_extra_error
from memorybus.events import Envelope, UnknownEvent
from memorybus.ids import sha256
from memorybus.log.entry import LoggedEvent, Place, decode_entry
from memorybus.query.query import row_of
from memorybus.wire.codec import Decoder

GROUP_ROWS = 1_000  # rows that a reader loads at once
GROUP_BYTES = 4 << 20  # the most bytes of envelopes in a group; its last row may exceed this
SEGMENT_BYTES = 64 << 20
"""The most bytes of envelopes in a segment; its last row may exceed this (G10).

This is the hard bound; archivers call a segment full earlier.
"""

_ZSTD_LEVEL = 3  # level 9 saves a tenth more of real conversations, at five times the time
UNREADABLE = "stray"  # the `kind` of a row whose `envelope` holds the raw fields of its entry (G6)
METADATA_KEY = b"memorybus"  # the key of `SegmentMetadata` in a file's metadata

TEXT_COLUMNS = (
    "kind",
    "key",
    "session",
    "root",
    "parent",
    "type",
    "agent",
    "user",
    "workspace",
    "platform",
    "origin",
    "omitted",
)
"""Columns of texts that repeat."""

_ENCODINGS = {"n": "DELTA_BINARY_PACKED", "at": "DELTA_BINARY_PACKED", "entry": "DELTA_BYTE_ARRAY"}


class RawEntry(msgspec.Struct, frozen=True):
    """An entry of the log as Redis returns it."""

    entry: str  # its id
    n: int  # its dense number
    fields: Sequence[bytes]  # names and values, alternating


class GroupSummary(msgspec.Struct, frozen=True, array_like=True):
    """What a reader knows of a group of rows without loading it."""

    entry: str  # the entry id of its first row
    n: int  # the number of its first row
    count: int  # the number of rows
    # whether all rows are events of ours that were kept and never lost (`kind` is ``e``, `omitted`
    # is empty), with numbers that follow each other
    is_plain: bool


class SegmentMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment's file says of itself, so that a file in the wrong place is found."""

    of: LogPartition  # the partition that it belongs to
    first: Place  # the place of its first row
    last: Place  # the place of its last row
    count: int  # the number of rows
    groups: tuple[GroupSummary, ...]  # its groups of rows, in order
    format: int = FORMAT  # the archive's format


class SegmentRow(msgspec.Struct, frozen=True):
    """One row, with a field for each column; `envelope` is None if the content was not kept."""

    n: int
    entry: str
    kind: str
    id: bytes
    key: str
    session: str
    root: str
    parent: str
    type: str
    agent: str
    user: str
    workspace: str
    platform: str
    origin: str
    at: int
    v: int
    envelope: bytes | None
    omitted: str = ""


COLUMNS = SegmentRow.__struct_fields__


def segment_row(partition: int, raw: RawEntry, decoder: Decoder) -> SegmentRow:
    """Return an entry's row with its envelope's bytes; `ValueError`: it is not an event."""
    event = decode_entry(partition, raw.entry, raw.fields, decoder)
    if event is None:
        raise ValueError(f"entry {raw.entry} is not an event")
    body = _unpacked_envelope(raw, event, decoder)
    if body is None:
        return _build_row(raw, event.envelope, UNREADABLE, msgspec.msgpack.encode(list(raw.fields)))
    if event.envelope.event.volatile:
        return _build_row(raw, event.envelope, "r" if event.resent else "e", None, "volatile")
    return _build_row(raw, event.envelope, "r" if event.resent else "e", body)


def _unpacked_envelope(raw: RawEntry, event: LoggedEvent, decoder: Decoder) -> bytes | None:
    if raw.fields[1] != b"%d" % raw.n:
        return None
    if isinstance(event.envelope.event, UnknownEvent) and event.envelope.event.wire_version == 0:
        return None  # not an envelope
    return decoder.unpacked(raw.fields[3])


def _build_row(
    raw: RawEntry, envelope: Envelope, kind: str, body: bytes | None, omitted: str = ""
) -> SegmentRow:
    row, session = row_of(envelope), envelope.session
    unknown = isinstance(envelope.event, UnknownEvent) and kind != UNREADABLE
    return SegmentRow(
        n=raw.n,
        entry=raw.entry,
        kind=kind,
        id=bytes.fromhex(row.id),
        key=envelope.key,
        session=row.session,
        root=session.root,
        parent=session.parent,
        type=envelope.event.name if unknown else row.type,  # type: ignore[union-attr]
        agent=row.agent,
        user=row.user,
        workspace=row.workspace,
        platform=row.platform,
        origin=row.origin,
        at=envelope.at,
        v=envelope.v,
        envelope=body,
        omitted=omitted,
    )


def segment_rows(partition: int, entries: Iterable[RawEntry], decoder: Decoder) -> list[SegmentRow]:
    """Return the rows of the first entries: as many as one segment holds (`SEGMENT_BYTES`)."""
    lines: list[SegmentRow] = []
    size = 0
    for raw in entries:
        lines.append(segment_row(partition, raw, decoder))
        size += len(lines[-1].envelope or b"")
        if size >= SEGMENT_BYTES:
            break
    return lines


def build_segment(
    of: LogPartition,
    lines: Sequence[SegmentRow],
    made_at: int,
    retention_mark: RetentionMark = NO_RETENTION_MARK,
) -> tuple[Segment, bytes]:
    """Return a segment of some rows, not yet in a manifest, and the bytes of its file."""
    first, last = Place(lines[0].entry, lines[0].n), Place(lines[-1].entry, lines[-1].n)
    groups = list(_groups(lines))
    cuts = tuple(map(_summarise_group, groups))
    inside = SegmentMetadata(of=of, first=first, last=last, count=len(lines), groups=cuts)
    data = _write_parquet(groups, inside)
    digest = sha256(data)
    kept = [line for line in lines if line.envelope is not None]
    segment = Segment(
        of=of,
        file=f"segments/{first.n:015d}-{last.n:015d}-{digest[:12]}.parquet",
        first=first,
        last=last,
        count=len(lines),
        kept=len(kept),
        types=dict(Counter(line.type for line in lines)),
        since=min(line.at for line in lines),
        until=max(line.at for line in lines),
        bytes=len(data),
        raw=sum(len(line.envelope or b"") for line in kept),
        sha256=digest,
        made_at=made_at,
        judged=retention_mark,
        sessions=bloom.build_filter({line.session for line in lines}),
        figures=FIGURES_VERSION,
    )
    return segment, data


def _groups(lines: Sequence[SegmentRow]) -> Iterable[Sequence[SegmentRow]]:
    start = size = 0
    for index, line in enumerate(lines):
        size += len(line.envelope or b"")
        if index + 1 - start == GROUP_ROWS or size >= GROUP_BYTES or index + 1 == len(lines):
            yield lines[start : index + 1]
            start, size = index + 1, 0


def _summarise_group(group: Sequence[SegmentRow]) -> GroupSummary:
    first = group[0]
    plain = all(
        line.kind == "e" and not line.omitted and line.n == first.n + row
        for row, line in enumerate(group)
    )
    return GroupSummary(first.entry, first.n, len(group), plain)


def _write_parquet(groups: Sequence[Sequence[SegmentRow]], inside: SegmentMetadata) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise missing_extra_error(error) from error
    schema = schema_of(pa)
    with_figures = schema.append(pa.field(FIGURES, figures_type(pa)))
    target = io.BytesIO()
    writer: Any = parquet.ParquetWriter(
        target,
        with_figures.with_metadata({METADATA_KEY: msgspec.json.encode(inside)}),
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=list(TEXT_COLUMNS),
        column_encoding=_ENCODINGS,
        write_page_checksum=True,
    )
    with writer:
        for group in groups:
            columns = zip(*map(msgspec.structs.astuple, group), strict=True)
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
            ]
            arrays.append(figures_array(pa, [line.envelope for line in group]))
            writer.write_table(pa.Table.from_arrays(arrays, schema=writer.schema), len(group))
    return target.getvalue()


def schema_of(pa: Any) -> Any:
    kinds = {
        "n": pa.int64(),
        "id": pa.uuid(),
        "at": pa.timestamp("ms", "UTC"),
        "v": pa.int32(),
        "envelope": pa.binary(),
    }
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in COLUMNS])
