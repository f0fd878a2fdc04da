"""What ``memorybus archive`` does: list segments, check them, export some of them."""

from collections.abc import Callable

import msgspec

from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Segment
from memorybus.archive.location import archive_of, check_reaches, views_of
from memorybus.archive.verification import FileReport, report_missing_manifest
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable, ConfigError
from memorybus.query.query import Query
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import lane_name


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


def open_archive(settings: Settings) -> Archive:
    """Return the archive of the log that the settings name.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive lies on another host.
        LogUnavailable: Redis does not answer.
    """
    archive = archive_of(connect_redis(settings), settings)
    if archive is None:
        raise missing_log_error(settings)
    return archive


def missing_log_error(settings: Settings) -> ArchiveUnavailable:
    """Return the error which says that there is no log where the settings point."""
    return ArchiveUnavailable(
        f"there is no log in the namespace {settings.namespace!r} of {redacted(settings.redis_url)}"
        f": nothing was ever published there, and nothing is archived; if that is not what you "
        f"meant, name another with --namespace or --url; else publish first: memorybus ingest FILE"
    )


def list_segments(archive: Archive, partitions: int) -> list[ListedSegment]:
    """Return the segments of all partitions, in order."""
    return [_describe_segment(one) for p in range(partitions) for one in archive.segments(p)]


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


def check_archive(
    settings: Settings, archive: Archive, step: Callable[[], None]
) -> list[FileReport]:
    """Check every file; report also what Redis counts as sealed although no file holds it.

    Args:
        settings: where the log is.
        archive: its archive.
        step: called for each file.

    Raises:
        LogUnavailable: Redis does not answer.
    """
    views = views_of(settings)  # read first: more may be sealed while the files are checked
    found = []
    for report in archive.verify(range(settings.partitions)):
        found.append(report)
        step()
    damaged = {one.partition for one in found if one.found == "damaged" and not one.events}
    for partition, view in views.items():
        end = archive.end(partition)
        lost = report_missing_manifest(partition, view, end.n if end else 0)
        if lost is not None and partition not in damaged:  # a damaged manifest is reported already
            found.append(lost)
    return found


def export_archive(
    settings: Settings, source: Archive, target: Archive, query: Query, step: Callable[[], None]
) -> int:
    """Write the sealed part of a log into another archive and check it; return how many events.

    An event that the query or a tombstone leaves out keeps its row, without content and owner.

    Raises:
        ConfigError: the target holds an archive of this log already.
        ArchiveUnavailable: the source lacks a part that was sealed.
        ArchiveDamaged: a segment cannot be read, or a written one cannot be read back.
    """
    partitions = range(settings.partitions)
    if any(target.segments(p) for p in partitions):
        raise ConfigError(f"{target.where} holds an archive already; name another directory")
    for partition, view in views_of(settings).items():
        check_reaches(source, partition, view.sealed)
    events = 0
    for partition in partitions:
        for segment in source.segments(partition):
            events += target.copy(source, segment, query).kept
            step()
    damaged = [one for one in target.verify(partitions) if one.found == "damaged"]
    if damaged:
        raise ArchiveDamaged(f"{target.where}/{damaged[0].file}: {damaged[0].why}")
    return events
