"""Segments: sealed entries of a partition as Parquet, for any engine to query as they lie.

A row holds what a query looks at as columns, and the envelope as msgpack, unpacked. Entries that
cannot be read keep their raw fields, so that reading one back is the same as reading it from the
log. Rows are cut into groups, which readers take one at a time.
"""

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from memorybus.archive.format import bloom
from memorybus.archive.format.manifest import FORMAT, NOT_JUDGED, Judged, LogPartition, Segment
from memorybus.archive.objects.store import missing
from memorybus.events import Envelope, UnknownEvent
from memorybus.ids import sha256
from memorybus.log.entry import LoggedEvent, Place, decode_entry
from memorybus.query.query import row_of
from memorybus.wire.codec import Decoder

GROUP_ROWS = 1_000
"""Rows that a reader takes at once."""

GROUP_BYTES = 4 << 20
"""Bytes of envelopes that a group holds at most, but for its last row."""

SEGMENT_BYTES = 64 << 20
"""Bytes of envelopes that a segment holds at most, but for its last row (G10)."""

_LEVEL = 3
"""Of zstd. Level 9 saves a tenth more of real conversations and takes five times as long."""

UNREADABLE = "stray"
"""The `kind` of a row whose `envelope` holds the raw fields of its entry (G6)."""

META = b"memorybus"
"""The key of `Inside` in a file's metadata."""

WORDS = (
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
    """An entry of the log as it stands.

    Attributes:
        entry: its id.
        n: its dense number.
        fields: names and values by turns.
    """

    entry: str
    n: int
    fields: Sequence[bytes]


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """What a group of rows is like, so that a reader need not read it to know.

    Attributes:
        entry: of its first row.
        n: of its first row.
        count: rows.
        is_plain: whether all are events of ours that were kept and never lost (`kind` is ``e``,
            `omitted` is empty), and their numbers follow each other.
    """

    entry: str
    n: int
    count: int
    is_plain: bool


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment says of itself, so that a file in another's place is named.

    Attributes:
        of: whose it is.
        first: the place of its first row.
        last: the place of its last row.
        count: rows.
        groups: its groups of rows, in order.
        format: of the archive.
    """

    of: LogPartition
    first: Place
    last: Place
    count: int
    groups: tuple[Cut, ...]
    format: int = FORMAT


class SegmentRow(msgspec.Struct, frozen=True):
    """One row. A field for each column; `envelope` is None for what is left out."""

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


def line_of(partition: int, raw: RawEntry, decoder: Decoder) -> SegmentRow:
    """Return an entry's row: decoded for the columns, its bytes kept.

    Raises:
        ValueError: somebody else wrote the entry: it is no event.
    """
    event = decode_entry(partition, raw.entry, raw.fields, decoder)
    if event is None:
        raise ValueError(f"entry {raw.entry} is no event")
    body = _body(raw, event, decoder)
    if body is None:
        return _line(raw, event.envelope, UNREADABLE, msgspec.msgpack.encode(list(raw.fields)))
    if event.envelope.event.volatile:
        return _line(raw, event.envelope, "r" if event.resent else "e", None, "volatile")
    return _line(raw, event.envelope, "r" if event.resent else "e", body)


def _body(raw: RawEntry, event: LoggedEvent, decoder: Decoder) -> bytes | None:
    """Return an entry's unpacked envelope; None if it cannot be told from the columns alone."""
    if raw.fields[1] != b"%d" % raw.n:
        return None
    if isinstance(event.envelope.event, UnknownEvent) and event.envelope.event.wire_version == 0:
        return None  # not an envelope
    return decoder.unpacked(raw.fields[3])


def _line(
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


def lines_of(partition: int, entries: Iterable[RawEntry], decoder: Decoder) -> list[SegmentRow]:
    """Return the rows of as many entries as one segment holds (`SEGMENT_BYTES`), at least one."""
    lines: list[SegmentRow] = []
    size = 0
    for raw in entries:
        lines.append(line_of(partition, raw, decoder))
        size += len(lines[-1].envelope or b"")
        if size >= SEGMENT_BYTES:
            break
    return lines


def sealed(
    of: LogPartition, lines: Sequence[SegmentRow], made_at: int, judged: Judged = NOT_JUDGED
) -> tuple[Segment, bytes]:
    """Return a segment of some rows, not yet in a manifest, and its file's bytes.

    Args:
        of: whose rows.
        lines: in order; at least one.
        made_at: wall time, milliseconds.
        judged: as of when it was decided what is kept.

    Raises:
        ArchiveUnavailable: pyarrow is not installed.
    """
    first, last = Place(lines[0].entry, lines[0].n), Place(lines[-1].entry, lines[-1].n)
    groups = list(_groups(lines))
    cuts = tuple(map(_cut, groups))
    inside = Inside(of=of, first=first, last=last, count=len(lines), groups=cuts)
    data = _written(groups, inside)
    known = sha256(data)
    kept = [line for line in lines if line.envelope is not None]
    segment = Segment(
        of=of,
        file=f"segments/{first.n:015d}-{last.n:015d}-{known[:12]}.parquet",
        first=first,
        last=last,
        count=len(lines),
        kept=len(kept),
        types=dict(Counter(line.type for line in lines)),
        since=min(line.at for line in lines),
        until=max(line.at for line in lines),
        bytes=len(data),
        raw=sum(len(line.envelope or b"") for line in kept),
        sha256=known,
        made_at=made_at,
        judged=judged,
        sessions=bloom.made({line.session for line in lines}),
    )
    return segment, data


def _groups(lines: Sequence[SegmentRow]) -> Iterable[Sequence[SegmentRow]]:
    start = size = 0
    for index, line in enumerate(lines):
        size += len(line.envelope or b"")
        if index + 1 - start == GROUP_ROWS or size >= GROUP_BYTES or index + 1 == len(lines):
            yield lines[start : index + 1]
            start, size = index + 1, 0


def _cut(group: Sequence[SegmentRow]) -> Cut:
    first = group[0]
    plain = all(
        line.kind == "e" and not line.omitted and line.n == first.n + row
        for row, line in enumerate(group)
    )
    return Cut(first.entry, first.n, len(group), plain)


def _written(groups: Sequence[Sequence[SegmentRow]], inside: Inside) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise missing(error) from error
    schema = schema_of(pa).with_metadata({META: msgspec.json.encode(inside)})
    target = io.BytesIO()
    writer: Any = parquet.ParquetWriter(
        target,
        schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=list(WORDS),
        column_encoding=_ENCODINGS,
        write_page_checksum=True,
    )
    with writer:
        for group in groups:
            columns = zip(*map(msgspec.structs.astuple, group), strict=True)
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), len(group))
    return target.getvalue()


def schema_of(pa: Any) -> Any:
    """Return a segment's columns (`pyarrow.Schema`).

    Args:
        pa: the module `pyarrow`, which only those import who read or write segments.
    """
    kinds = {
        "n": pa.int64(),
        "id": pa.uuid(),
        "at": pa.timestamp("ms", "UTC"),
        "v": pa.int32(),
        "envelope": pa.binary(),
    }
    return pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in COLUMNS])
