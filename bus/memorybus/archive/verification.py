"""Checks a partition's archive: every line of the manifest, every byte of the segments."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from memorybus.archive.format.manifest import Manifest, Segment
from memorybus.archive.format.reader import rows_of
from memorybus.archive.partition import SealedPartition
from memorybus.errors import ArchiveDamaged
from memorybus.log.continuity import PartitionView, find_lost_archive
from memorybus.log.entry import Place

_ANY_MANIFEST = "manifest-*.jsonl"
SealedFileState = Literal["sound", "damaged", "unlisted", "gap"]


class FileReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found of one file."""

    partition: int  # the partition of the file
    file: str  # its name below the partition's folder
    # ``sound``; ``damaged``; ``unlisted``: no manifest names it (a seal was cut short, or it was
    # compacted; `memorybus archive run` deletes it later); ``gap``: numbers that were lost before
    # they could be sealed
    found: SealedFileState
    why: str = ""  # what is wrong; "" for a sound file
    events: int = 0  # the rows in it
    bytes: int = 0  # its size


def check_partition(part: SealedPartition) -> Iterator[FileReport]:
    part.shared.sound.clear()
    part.close()
    manifest = part.newest_manifest()
    yield from _check_manifest(part, manifest)
    for index, segment in enumerate(manifest.segments):
        yield _check_segment(part, segment)
        yield from _report_gap(part, manifest, index)
    yield from _report_unlisted(part, manifest)
    part.close()


def report_missing_manifest(
    partition: int, view: PartitionView, archived: int
) -> FileReport | None:
    """Return a report if Redis knows of sealed events that no manifest names; else None. Pure."""
    if view.sealed <= archived:
        return None
    gap = find_lost_archive(
        partition, view.sealed, Place("", archived) if archived else None, view.first
    )
    first, last = (gap.first, gap.last) if gap else (archived + 1, view.sealed)
    remedy = "the log still has them, and `memorybus archive run` seals them again"
    if gap is not None:
        remedy = "restore it with its segments, or set `archive` to the place that has them"
    why = f"events {first} to {last} were sealed, but no manifest here lists them: one is missing"
    return FileReport(
        partition=partition, file=_ANY_MANIFEST, found="damaged", why=f"{why}; {remedy}"
    )


def _check_manifest(part: SealedPartition, manifest: Manifest) -> Iterator[FileReport]:
    partition = part.of.partition
    damage = manifest.damage
    if damage is not None:
        why = f"line {damage.line}: {damage.why}" if damage.line else damage.why
        file = damage.file.rpartition("/")[2]
        yield FileReport(partition=partition, file=file, found="damaged", why=why)
    elif manifest.version:
        name = f"manifest-{manifest.version:012d}.jsonl"
        yield FileReport(partition=partition, file=name, found="sound")


def _check_segment(part: SealedPartition, segment: Segment) -> FileReport:
    why = ""
    try:
        rows = sum(1 for _ in rows_of(part.open_segment(segment)))
        if rows != segment.count:
            why = f"has {rows} rows, but the manifest has {segment.count}"
    except ArchiveDamaged as error:
        why = str(error)
    return FileReport(
        partition=part.of.partition,
        file=segment.file,
        found="damaged" if why else "sound",
        why=why,
        events=segment.count,
        bytes=segment.bytes,
    )


def _report_gap(part: SealedPartition, manifest: Manifest, index: int) -> Iterator[FileReport]:
    """Report numbers that are missing before a segment: Redis had lost them."""
    segment = manifest.segments[index]
    before = manifest.segments[index - 1].last.n if index else 0
    if segment.first.n > before + 1:
        why = f"numbers {before + 1} to {segment.first.n - 1} were never sealed"
        yield FileReport(partition=part.of.partition, file=segment.file, found="gap", why=why)


def _report_unlisted(part: SealedPartition, manifest: Manifest) -> Iterator[FileReport]:
    named = {f"{part.folder}/{segment.file}" for segment in manifest.segments}
    for stored_file in part.objects.list(f"{part.folder}/segments"):
        if stored_file.name not in named:
            file = stored_file.name.removeprefix(f"{part.folder}/")
            why = "superseded: deleted within an hour"
            report = FileReport(
                partition=part.of.partition,
                file=file,
                found="unlisted",
                why=why,
                bytes=stored_file.size,
            )
            yield report
