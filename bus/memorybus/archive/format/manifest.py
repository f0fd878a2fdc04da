"""The manifest of a partition's archive: it names the segments and proves that none was changed.

It has one JSON line for each segment, in order, and a last line that counts them. Every line ends
with the SHA-256 of its own text, and the text holds the sum of the line before. So a line that was
edited, lost, repeated or moved is found; the lines before it count, and none behind it. Pure;
`memorybus.archive.archive` reads and writes the files.
"""

import re
from collections.abc import Sequence

import msgspec

from memorybus.ids import sha256
from memorybus.log.entry import Place
from memorybus.msgspec_types import prepared

FORMAT = 1
_SUM = b',"sum":"'
_HEX = 64
_TAIL = len(_SUM) + _HEX + len(b'"}')
_FILE = re.compile(r"segments/[0-9A-Za-z-]+\.parquet")
_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


class LogPartition(msgspec.Struct, frozen=True):
    """A partition of a log; every line of a manifest and every segment names its partition."""

    namespace: str  # the namespace of the Redis keys
    log: str  # the log's id, which was made when the log was created
    partition: int  # the partition's number

    @property
    def seed(self) -> str:
        """The sum that the first line names as its predecessor."""
        text = f"memorybus archive {FORMAT}\n{self.namespace}\n{self.log}\n{self.partition}"
        return sha256(text.encode())


class RetentionMark(msgspec.Struct, frozen=True):
    """The state on which it was decided which rows keep their envelope."""

    at: int = 0  # the time at which ages were measured (wall time of Redis, milliseconds)
    tombstones: str = ""  # a mark of the tombstones that were known; "" for none


NO_RETENTION_MARK = RetentionMark()
"""The mark of a segment whose rows were never checked for content to drop."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A sealed segment: one line of the manifest."""

    of: LogPartition  # the partition that it belongs to
    file: str  # its name below the partition's folder
    first: Place  # the place of its first row
    last: Place  # the place of its last row
    count: int  # rows
    kept: int  # rows that still have their envelope
    types: dict[str, int] = {}  # rows by type tag
    since: int  # the earliest time of an event in it (milliseconds)
    until: int  # the latest time of an event in it (milliseconds)
    bytes: int  # the file's size
    raw: int  # the size of the envelopes in it, unpacked
    sha256: str  # the SHA-256 of the file
    made_at: int  # when it was sealed (wall time, milliseconds)
    # the state on which it was decided which rows keep their envelope; earlier releases did not
    # write it
    judged: RetentionMark = NO_RETENTION_MARK
    # a Bloom filter of the sessions in it (`memorybus.archive.format.bloom`), base64
    sessions: str = ""
    figures: int = 0  # the version of the column that insights read; 0 if the file has none
    previous: str = ""  # the sum of the line before
    sum: str = ""  # this line's sum; "" until the line stands in a manifest


class ManifestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of a manifest."""

    of: LogPartition  # the partition that the manifest belongs to
    version: int  # the manifest's number
    count: int  # how many lines come before this one
    head: str  # the sum of the line before
    made_at: int  # when the manifest was written (wall time, milliseconds)
    format: int = FORMAT  # the archive's format


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file that is not as it was written."""

    partition: int  # the partition
    file: str  # the manifest or the segment
    why: str  # what is wrong
    line: int = 0  # the line of the manifest, from 1; 0 for a segment

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.why}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a manifest, as far as its sums prove it."""

    version: int  # its number; 0 if there is no manifest
    segments: tuple[Segment, ...]  # the segments before the first damage, in order
    damage: Damage | None = None  # the first line that is not as it was written; None if all are

    @property
    def end(self) -> Place | None:
        return self.segments[-1].last if self.segments else None


EMPTY_MANIFEST = Manifest(version=0, segments=())
"""The manifest of a partition without sealed events."""


def render(of: LogPartition, version: int, segments: Sequence[Segment], made_at: int) -> bytes:
    """Return a manifest's bytes; the segments are chained anew."""
    lines = []
    head = of.seed
    for segment in segments:
        line = msgspec.structs.replace(segment, previous=head, sum="")
        text, head = _append_sum(msgspec.json.encode(line))
        lines.append(text)
    end = ManifestEnd(of=of, version=version, count=len(lines), head=head, made_at=made_at)
    lines.append(_append_sum(msgspec.json.encode(end))[0])
    return b"".join(line + b"\n" for line in lines)


def _append_sum(text: bytes) -> tuple[bytes, str]:
    body = text.removesuffix(b',"sum":""}').removesuffix(b"}")
    digest = sha256(body)
    return body + _SUM + digest.encode() + b'"}', digest


def parse(data: bytes, of: LogPartition, version: int, name: str) -> Manifest:
    """Return the content of a manifest up to its first damage, and name that."""
    segments: list[Segment] = []
    head, lines = of.seed, data.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        value = _decode_line(line)
        why = _find_fault(value, of, head, version, is_last=number == len(lines))
        if value is None or why:
            damage = Damage(partition=of.partition, file=name, why=why, line=number)
            return Manifest(version=version, segments=tuple(segments), damage=damage)
        if isinstance(value, ManifestEnd):
            return Manifest(version=version, segments=tuple(segments))
        segments.append(value)
        head = value.sum
    cut = Damage(partition=of.partition, file=name, why="was cut off: its last line is missing")
    return Manifest(version=version, segments=tuple(segments), damage=cut)


def _decode_line(line: bytes) -> Segment | ManifestEnd | None:
    body, tail = line[: -_TAIL - 1], line[-_TAIL - 1 :]
    if tail != _SUM + sha256(body).encode() + b'"}\n':
        return None
    kind: type[Segment | ManifestEnd] = ManifestEnd if b'"head":' in line else Segment
    try:
        value = msgspec.json.decode(line, type=prepared(kind))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, ManifestEnd) or _has_our_form(value) else None


def _has_our_form(segment: Segment) -> bool:
    """Return whether file name and places have our form: another program's sums may be right."""
    entries = (segment.first.entry, segment.last.entry)
    return bool(_FILE.fullmatch(segment.file)) and all(map(_ENTRY.fullmatch, entries))


def _find_fault(
    value: Segment | ManifestEnd | None, of: LogPartition, head: str, version: int, *, is_last: bool
) -> str:
    if value is None:
        return "is not as it was written (edited, or damaged on the disk)"
    if value.of != of:
        where = f"partition {value.of.partition} of log {value.of.log} ({value.of.namespace})"
        return f"belongs to {where}, not here"
    if (value.head if isinstance(value, ManifestEnd) else value.previous) != head:
        return "does not follow the line before it: a line is missing, repeated or moved"
    if isinstance(value, ManifestEnd):
        if value.version != version:
            return f"is the end of version {value.version}, but the name has another number"
        if not is_last:
            return "is a last line, but others follow"
    return ""
