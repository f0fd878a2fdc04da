"""``memorybus archive export``: sealed events as an archive of their own."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.location import check_reaches, views_of
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, ConfigError
from memorybus.query.query import Query

from memorybus_console.operations.archive.opening import open_archive


class ArchiveExported(msgspec.Struct, frozen=True):
    """How many events were written, and where to."""

    where: str
    events: int


def export_archive(
    settings: Settings, directory: Path, query: Query, step: Callable[[], None]
) -> ArchiveExported:
    """Write the sealed part of a log as an archive in a directory, and check it.

    An event that the query or a tombstone leaves out keeps its row, without content and owner.

    Args:
        directory: where to write; it need not exist yet.
        query: selects the events whose content is kept.
        step: called for each segment.

    Raises:
        ConfigError: the directory contains an archive of this log already.
        ArchiveUnavailable: the log does not exist, or its archive lacks a part that was sealed.
        ArchiveDamaged: a segment cannot be read, or a written one cannot be read back.
        LogUnavailable: Redis does not answer.
    """
    with (
        closing(open_archive(settings)) as source,
        closing(source.in_directory(directory)) as target,
    ):
        events = _copy(settings, source, target, query, step)
        return ArchiveExported(target.where, events)


def _copy(
    settings: Settings, source: Archive, target: Archive, query: Query, step: Callable[[], None]
) -> int:
    """Copy every segment, check the copies, and return how many events they have."""
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
