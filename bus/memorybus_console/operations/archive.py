"""What commands do with the archive: seal, list, verify, export, import another one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
from memorybus.archive.archive import Archive
from memorybus.archive.format.manifest import Segment
from memorybus.archive.location import archive_of, check_reaches, views_of
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.verification import FileReport, report_missing_manifest
from memorybus.config.redis_urls import redacted
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable, ConfigError
from memorybus.events import Envelope
from memorybus.processes.commands import run_archiver
from memorybus.processes.reports import ArchiverRun
from memorybus.query.query import Query
from memorybus.query.ranges import Plan
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import lane_name
from memorybus.text.display import format_size

from memorybus_console.operations.ingest.new_events import ImportResult, publish_new
from memorybus_console.result import BYTES, HIDDEN, TIME, Column, Remark, Result


class ListedSegment(msgspec.Struct, frozen=True):
    """One segment, as ``archive ls --json`` shows it."""

    partition: Annotated[int, HIDDEN]
    file: Annotated[str, Column(title="segment")]
    first: int
    last: int
    events: Annotated[int, HIDDEN]
    kept: Annotated[int, Column(title="events")]
    bytes: Annotated[int, Column(title="size", unit="bytes")]
    raw: Annotated[int, BYTES]
    since: Annotated[int, TIME]
    until: Annotated[int, TIME]
    types: Annotated[dict[str, int], HIDDEN]


class Segments(Result, frozen=True):
    """Where the archive is, and its segments."""

    where: Annotated[str, HIDDEN]
    segments: list[ListedSegment]

    def notes(self) -> Iterator[Remark]:
        events = sum(each.kept for each in self.segments)
        size = format_size(sum(each.bytes for each in self.segments))
        yield Remark(f"{events} events in {len(self.segments)} segments, {size}, in {self.where}")


class ArchiveVerified(Result, frozen=True):
    """The files of the archive: how many are sound, which are damaged, other findings.

    Attributes:
        noted: files that no manifest names, and numbers that were lost before they were sealed.
    """

    ok: bool
    sound: int
    damaged: Annotated[list[FileReport], HIDDEN]
    noted: Annotated[list[FileReport], HIDDEN]
    where: str

    def headline(self) -> str:
        return f"{self.sound} files sound, {len(self.damaged)} damaged, in {self.where}"

    def notes(self) -> Iterator[Remark]:
        for report in (*self.noted, *self.damaged):
            name = f"{lane_name(report.partition)}/{report.file}"
            text = f"{name}: {report.found}: {report.why}"
            yield Remark(text, "red" if report in self.damaged else "yellow")
        if not self.ok:
            yield Remark("restore the damaged files from a backup; the others are readable", "red")

    def failed(self) -> bool:
        return not self.ok


class ArchiveExported(Result, frozen=True):
    """How many events were written, and where to."""

    where: str
    events: int

    def headline(self) -> str:
        return f"{self.events} events written to {self.where}, and verified"

    def notes(self) -> Iterator[Remark]:
        if not self.events:
            yield Remark("no such events are sealed; first run: memorybus archive run", "yellow")


def open_archive(settings: Settings) -> Archive:
    """Return the archive of the log that the settings name; the caller closes it.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive lies on another host.
    """
    with closing(connect_redis(settings)) as redis:
        archive = archive_of(redis, settings)
    if archive is None:
        raise _missing_log_error(settings)
    return archive


def _missing_log_error(settings: Settings) -> ArchiveUnavailable:
    return ArchiveUnavailable(
        f"there is no log in the namespace {settings.namespace!r} of {redacted(settings.redis_url)}"
        f": nothing was ever published there, and nothing is archived; if that is not what you "
        f"meant, name another with --namespace or --url; else publish first: memorybus ingest FILE"
    )


def archive_now(settings: Settings) -> ArchiverRun:
    """Seal events that are due, join small segments and trim the log, in a process of its own.

    Raises:
        ArchiveUnavailable: there is no log, or the archive cannot be reached.
        MemoryBusError: the process ended without a report.
    """
    run = run_archiver(settings)
    if not run.place:
        raise _missing_log_error(settings)
    return run


def list_segments(settings: Settings) -> Segments:
    """Return the segments of all partitions, in order.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive cannot be reached.
        ArchiveDamaged: a manifest cannot be read.
    """
    with closing(open_archive(settings)) as archive:
        segments = [each for p in range(settings.partitions) for each in archive.segments(p)]
        return Segments(archive.where, [_listed(segment) for segment in segments])


def _listed(segment: Segment) -> ListedSegment:
    return ListedSegment(
        partition=segment.of.partition,
        file=f"{lane_name(segment.of.partition)}/{segment.file}",
        first=segment.first.n,
        last=segment.last.n,
        events=segment.count,
        kept=segment.kept,
        bytes=segment.bytes,
        raw=segment.raw,
        since=segment.since,
        until=segment.until,
        types=segment.types,
    )


def verify_archive(settings: Settings, step: Callable[[], None]) -> ArchiveVerified:
    """Check every manifest and every byte; report also what Redis counts and no file contains.

    Raises:
        ArchiveUnavailable: the log does not exist yet, or its archive cannot be reached.
    """
    with closing(open_archive(settings)) as archive:
        reports = _check_files(settings, archive, step)
        damaged = [report for report in reports if report.found == "damaged"]
        return ArchiveVerified(
            ok=not damaged,
            sound=sum(report.found == "sound" for report in reports),
            damaged=damaged,
            noted=[report for report in reports if report.found in ("gap", "unlisted")],
            where=archive.where,
        )


def _check_files(
    settings: Settings, archive: Archive, step: Callable[[], None]
) -> Sequence[FileReport]:
    views = views_of(settings)  # read first: more may be sealed while the files are checked
    reports = []
    for report in archive.verify(range(settings.partitions)):
        reports.append(report)
        step()
    unlisted = {each.partition for each in reports if each.found == "damaged" and not each.events}
    for partition in views.keys() - unlisted:  # a damaged manifest is reported already
        end = archive.end(partition)
        missing = report_missing_manifest(partition, views[partition], end.n if end else 0)
        reports += [missing] if missing else []
    return reports


def export_archive(
    settings: Settings, directory: Path, query: Query, step: Callable[[], None]
) -> ArchiveExported:
    """Write the sealed part of a log as an archive in a directory, and check it.

    An event that the query or a tombstone leaves out keeps its row, without content and owner.

    Args:
        directory: where to write; it need not exist yet.
        query: selects the events whose content is kept.

    Raises:
        ConfigError: the directory contains an archive of this log already.
        ArchiveUnavailable: the log does not exist, or its archive lacks a part that was sealed.
        ArchiveDamaged: a segment cannot be read, or a written one cannot be read back.
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
    damaged = [report for report in target.verify(partitions) if report.found == "damaged"]
    if damaged:
        raise ArchiveDamaged(f"{target.where}/{damaged[0].file}: {damaged[0].why}")
    return events


def import_archive(
    settings: Settings, directory: Path, query: Query, step: Callable[[], None], *, execute: bool
) -> ImportResult:
    """Publish those events of an archive that this log never had, in their order.

    Raises:
        ArchiveDamaged: a part of it cannot be read; the events before that part stay published.
        ArchiveUnavailable: this log's own archive cannot say which events it has.
        ConfigError: the directory has no archive.
        LogStalled: the log accepts nothing; the next run publishes the rest.
    """
    envelopes = _read_envelopes(_find_archives(directory), query)
    return publish_new(settings, envelopes, step, execute=execute)


def _find_archives(directory: Path) -> list[tuple[Archive, list[int]]]:
    homes = sorted({path.parent.parent for path in directory.glob("*/*/p*/manifest-*.jsonl")})
    if not homes:
        raise ConfigError(
            f"{directory} holds no archive: it needs NAMESPACE/LOG/p00/manifest-….jsonl, as "
            f"`memorybus archive export` writes it"
        )
    return [
        (Archive(LocalObjects(home), home.parent.name, home.name), _partitions_of(home))
        for home in homes
    ]


def _partitions_of(home: Path) -> list[int]:
    names = sorted({path.parent.name for path in home.glob("p*/manifest-*.jsonl")})
    return [int(name[1:]) for name in names if name[1:].isascii() and name[1:].isdigit()]


def _read_envelopes(
    sources: Iterable[tuple[Archive, list[int]]], query: Query
) -> Iterator[Envelope]:
    for archive, partitions in sources:
        for partition in partitions:
            for event in archive.scan(partition, Plan(query=query)):
                yield event.envelope
