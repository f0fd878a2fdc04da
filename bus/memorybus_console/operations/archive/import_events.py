"""``memorybus archive import``: the events of an archive, published into another log."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from memorybus.archive.archive import Archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Envelope
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

from memorybus_console.operations.ingest.new_events import ImportResult, publish_new


def find_archives(directory: Path) -> list[tuple[Archive, list[int]]]:
    """Return the archives in a directory, with their partitions.

    Raises:
        ConfigError: there are none.
    """
    homes = sorted({path.parent.parent for path in directory.glob("*/*/p*/manifest-*.jsonl")})
    if not homes:
        raise ConfigError(
            f"{directory} holds no archive: it needs NAMESPACE/LOG/p00/manifest-….jsonl, as "
            f"`memorybus archive export` writes it"
        )
    return [(_archive_at(home), _partitions_of(home)) for home in homes]


def _archive_at(home: Path) -> Archive:
    return Archive(LocalObjects(home), home.parent.name, home.name)


def _partitions_of(home: Path) -> list[int]:
    names = sorted({path.parent.name for path in home.glob("p*/manifest-*.jsonl")})
    return [int(name[1:]) for name in names if name[1:].isascii() and name[1:].isdigit()]


def import_archive(
    settings: Settings, directory: Path, query: Query, step: Callable[[], None], *, execute: bool
) -> ImportResult:
    """Publish those events of an archive that this log never had, in their order.

    Raises:
        ArchiveDamaged: a part of it cannot be read; the events before that part stay published.
        ArchiveUnavailable: this log's own archive cannot say which events it has.
        LogStalled: the log accepts nothing; the next run publishes the rest.
    """
    envelopes = _read_envelopes(find_archives(directory), query)
    return publish_new(settings, envelopes, step, execute=execute)


def _read_envelopes(
    sources: Iterable[tuple[Archive, list[int]]], query: Query
) -> Iterator[Envelope]:
    for archive, partitions in sources:
        for partition in partitions:
            for event in archive.scan(partition, Plan(query=query)):
                yield event.envelope
