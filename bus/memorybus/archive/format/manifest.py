"""The manifest of a partition's archive: it names the segments and proves that none was changed.

It has one JSON line for each segment, in order, and a last line that counts them. Every line ends
with the SHA-256 of its own text, and the text holds the sum of the line before. So a line that was
edited, lost, repeated or moved is found, and the others stay readable. Pure;
`memorybus.archive.archive` reads and writes the files.
"""

from collections.abc import Mapping, Sequence

import msgspec

from memorybus.ids import sha256
from memorybus.log.entry import Place

FORMAT = 1

_SUM = b',"sum":"'
_HEX = 64
_TAIL = len(_SUM) + _HEX + len(b'"}')


class LogPartition(msgspec.Struct, frozen=True):
    """A partition of a log; every line of a manifest and every segment names its partition.

    Attributes:
        namespace: the namespace of the Redis keys.
        log: the log's id, which was made when the log was created.
        partition: the partition's number.
    """

    namespace: str
    log: str
    partition: int

    @property
    def seed(self) -> str:
        """The sum that the first line names as its predecessor."""
        text = f"memorybus archive {FORMAT}\n{self.namespace}\n{self.log}\n{self.partition}"
        return sha256(text.encode())


class RetentionMark(msgspec.Struct, frozen=True):
    """The state on which it was decided which rows keep their envelope.

    Attributes:
        at: the time at which ages were measured (wall time of Redis, milliseconds).
        tombstones: a mark of the tombstones that were known; "" for none.
    """

    at: int = 0
    tombstones: str = ""


NO_RETENTION_MARK = RetentionMark()
"""The mark of a segment whose rows were never checked for content to drop."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A sealed segment: one line of the manifest.

    Attributes:
        of: the partition that it belongs to.
        file: its name below the partition's folder.
        first: the place of its first row.
        last: the place of its last row.
        count: rows.
        kept: rows that still have their envelope.
        types: rows by type tag.
        since: the earliest time of an event in it (milliseconds).
        until: the latest time of an event in it (milliseconds).
        bytes: the file's size.
        raw: the size of the envelopes in it, unpacked.
        sha256: the SHA-256 of the file.
        made_at: when it was sealed (wall time, milliseconds).
        judged: the state on which it was decided which rows keep their envelope; earlier releases
            did not write it.
        sessions: a Bloom filter of the sessions in it (`memorybus.archive.format.bloom`), base64.
        previous: the sum of the line before.
        sum: this line's sum; "" until the line stands in a manifest.
    """

    of: LogPartition
    file: str
    first: Place
    last: Place
    count: int
    kept: int
    types: dict[str, int] = {}
    since: int
    until: int
    bytes: int
    raw: int
    sha256: str
    made_at: int
    judged: RetentionMark = NO_RETENTION_MARK
    sessions: str = ""
    previous: str = ""
    sum: str = ""


class ManifestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of a manifest.

    Attributes:
        of: the partition that the manifest belongs to.
        version: the manifest's number.
        count: how many lines come before this one.
        head: the sum of the line before.
        made_at: when the manifest was written (wall time, milliseconds).
        format: the archive's format.
    """

    of: LogPartition
    version: int
    count: int
    head: str
    made_at: int
    format: int = FORMAT


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file that is not as it was written.

    Attributes:
        partition: the partition.
        file: the manifest or the segment.
        line: the line of the manifest, from 1; 0 for a segment.
        why: what is wrong.
    """

    partition: int
    file: str
    why: str
    line: int = 0

    def __str__(self) -> str:
        """Name the file, the line and what is wrong."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.why}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a manifest, as far as its sums prove it.

    Attributes:
        version: its number; 0 if there is no manifest.
        segments: the segments whose lines are intact, in order and without overlaps.
        head: the sum of the last segment's line, or the seed if there is none; "" if unknown.
        damage: the lines that are not as they were written.
    """

    version: int
    segments: tuple[Segment, ...]
    head: str
    damage: tuple[Damage, ...] = ()

    @property
    def end(self) -> Place | None:
        """The last sealed place; None if nothing is sealed."""
        return self.segments[-1].last if self.segments else None

    @property
    def whole(self) -> bool:
        """Whether no line is missing between the first and the last, in spite of other damage."""
        last = self.segments[-1].sum if self.segments else None
        chained = not any(map(self.gap_before, range(len(self.segments))))
        return chained and (self.head == last if last else not self.damage)

    def gap_before(self, index: int) -> bool:
        """Say whether lines are missing before one of the segments."""
        before = self.segments[index - 1].sum if index else self.segments[index].of.seed
        return self.segments[index].previous != before


def empty_manifest(of: LogPartition) -> Manifest:
    """Return the manifest of a partition without sealed events."""
    return Manifest(version=0, segments=(), head=of.seed)


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
    """Return a line with its sum appended, and the sum."""
    body = text.removesuffix(b',"sum":""}').removesuffix(b"}")
    known = sha256(body)
    return body + _SUM + known.encode() + b'"}', known


def is_intact(line: bytes) -> bool:
    """Say whether a line is as it was written."""
    body, tail = line[:-_TAIL], line[-_TAIL:]
    return tail == _SUM + sha256(body).encode() + b'"}'


def by_sum(segments: Sequence[Segment]) -> Mapping[str, Segment]:
    """Return segments by the sums of their lines."""
    return {segment.sum: segment for segment in segments}
