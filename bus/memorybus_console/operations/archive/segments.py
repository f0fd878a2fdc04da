"""``memorybus archive ls``: the segments of the archive."""

from contextlib import closing

import msgspec
from memorybus.archive.format.manifest import Segment
from memorybus.config.settings import Settings
from memorybus.redis.keys import lane_name

from memorybus_console.operations.archive.opening import open_archive


class ListedSegment(msgspec.Struct, frozen=True):
    """One segment, as ``archive ls --json`` shows it."""

    partition: int
    file: str
    first: int
    last: int
    events: int
    kept: int
    bytes: int
    raw: int
    since: int
    until: int
    types: dict[str, int]


class Segments(msgspec.Struct, frozen=True):
    """Where the archive is, and its segments."""

    where: str
    segments: list[ListedSegment]


def list_segments(settings: Settings) -> Segments:
    """Return the segments of all partitions, in order.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive cannot be reached.
        ArchiveDamaged: a manifest cannot be read.
        LogUnavailable: Redis does not answer.
    """
    with closing(open_archive(settings)) as archive:
        partitions = range(settings.partitions)
        found = [_describe_segment(one) for p in partitions for one in archive.segments(p)]
        return Segments(archive.where, found)


def _describe_segment(one: Segment) -> ListedSegment:
    return ListedSegment(
        one.of.partition,
        f"{lane_name(one.of.partition)}/{one.file}",
        one.first.n,
        one.last.n,
        one.count,
        one.kept,
        one.bytes,
        one.raw,
        one.since,
        one.until,
        one.types,
    )
