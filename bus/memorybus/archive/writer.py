"""Writes a partition's archive: it seals and compacts, each by a new manifest, and cleans (G7)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from memorybus.archive import tombstones
from memorybus.archive.decoding import effective_type
from memorybus.archive.format.manifest import (
    NO_RETENTION_MARK,
    Manifest,
    RetentionMark,
    Segment,
    render,
)
from memorybus.archive.format.parquet import RawEntry, SegmentRow, build_segment, segment_rows
from memorybus.archive.format.reader import SegmentReader, rows_of
from memorybus.archive.objects.store import StoredFile
from memorybus.archive.partition import KEPT_MANIFESTS, SealedPartition, manifest_name
from memorybus.clock import Clock
from memorybus.errors import ArchiveDamaged, ArchiveTaken, SegmentDamaged
from memorybus.events import Omission
from memorybus.ids import sha256_of
from memorybus.log.entry import parse_entry_id
from memorybus.query.query import EventRow, Query
from memorybus.testing import CrashPoint
from memorybus.wire.codec import Decoder

Omit = Callable[[EventRow, int], Omission | None]
"""Takes a row and its time (milliseconds); returns why its envelope is dropped, None to keep it."""

CLEAN_AGE = 3_600.0
"""Seconds for which a file stays that no recent manifest names: a reader or writer may need it."""

WRITE_TIME = 600.0
"""Seconds that a writer may take until its manifest is written: far less than `CLEAN_AGE`."""


class PartitionWriter:
    """Writes one partition. Belongs to one thread; the caller's lease makes it the only writer."""

    def __init__(
        self, part: SealedPartition, decoder: Decoder, clock: Clock, crash: CrashPoint
    ) -> None:
        self._part = part
        self._objects = part.objects
        self._decoder = decoder
        self._clock = clock
        self._crash = crash
        self._began = clock.monotonic()

    def publish(
        self, entries: Iterable[RawEntry], omit: Omit | None, retention_mark: RetentionMark
    ) -> Segment:
        manifest = self._whole_manifest()
        fresh = segment_rows(self._part.of.partition, _unsealed(manifest, entries), self._decoder)
        lines = [self._omit_content(line, omit) for line in fresh]
        if not lines:
            if not manifest.segments:
                raise ValueError("there is nothing to seal: every call needs at least one entry")
            return manifest.segments[-1]
        return self._write_segment(
            manifest, manifest.segments, lines, retention_mark=retention_mark
        )

    def replace(
        self, segments: Sequence[Segment], omit: Omit | None, retention_mark: RetentionMark
    ) -> Segment:
        manifest = self._whole_manifest()
        sums = [segment.sha256 for segment in manifest.segments]
        gone = [segment.sha256 for segment in segments]
        start = sums.index(gone[0]) if gone and gone[0] in sums else -1
        if start < 0 or sums[start : start + len(gone)] != gone:
            raise ArchiveTaken(f"{self._where()}: these segments are not neighbours any more")
        rows = [
            self._omit_content(line, omit) for segment in segments for line in self.rows(segment)
        ]
        rest = (manifest.segments[:start], manifest.segments[start + len(gone) :])
        return self._write_segment(manifest, rest[0], rows, rest[1], retention_mark)

    def clean(self, damaged: Collection[str]) -> int:
        before = round(self._clock.now_ms() - CLEAN_AGE * 1000)
        swept = self._delete_leftovers(before)
        recent = self._drop_old_manifests()
        files = {file.name: file for file in self._objects.list(f"{self._part.folder}/segments")}
        chosen = _find_unneeded(self._part.folder, recent, files, before, damaged)
        if chosen.outlived:  # in a quiet partition no other manifest would ever follow
            for version in range(recent[-1].version + 1, recent[-1].version + KEPT_MANIFESTS):
                self._write_manifest(version, recent[-1].segments)
        for name in (*chosen.unnamed, *chosen.outlived):
            self._objects.delete(name)
        return swept + len(chosen.unnamed) + len(chosen.outlived)

    def _drop_old_manifests(self) -> list[Manifest]:
        """Delete all but the newest manifests; return these, the newest last."""
        versions = self._part.versions()
        for version in versions[:-KEPT_MANIFESTS]:
            self._objects.delete(manifest_name(self._part.folder, version))
        return [self._part.load(version) for version in versions[-KEPT_MANIFESTS:]]

    def _delete_leftovers(self, before: int) -> int:
        folders = (self._part.folder, f"{self._part.folder}/segments", tombstones.FOLDER)
        files = [leftover for folder in folders for leftover in self._objects.leftovers(folder)]
        dead = [file for file in files if file.modified_at < before]
        for one in dead:
            self._objects.delete(one.name)
        return len(dead)

    def _whole_manifest(self) -> Manifest:
        manifest = self._part.newest_manifest()
        self._part.check_whole()
        return manifest

    def _write_segment(
        self,
        manifest: Manifest,
        before: Sequence[Segment],
        lines: Sequence[SegmentRow],
        after: Sequence[Segment] = (),
        retention_mark: RetentionMark = NO_RETENTION_MARK,
    ) -> Segment:
        segment, data = build_segment(self._part.of, lines, self._clock.now_ms(), retention_mark)
        name = f"{self._part.folder}/{segment.file}"
        if not self._objects.put_new(name, data):
            raise ArchiveDamaged(f"{self._objects.where}/{name}: exists already with other bytes")
        self._crash("archive.written")
        self._read_back(segment, name, lines)
        self._crash("archive.verified")
        self._write_manifest(manifest.version + 1, [*before, segment, *after])
        self._crash("archive.published")
        return self._part.newest_manifest().segments[len(before)]

    def _read_back(self, segment: Segment, name: str, lines: Sequence[SegmentRow]) -> None:
        where = f"{self._objects.where}/{name}"
        file = self._objects.open(name)
        if file is None or sha256_of(file) != segment.sha256:
            raise ArchiveDamaged(f"{where}: does not hold what was written; check the disk")
        file.seek(0)
        reader = SegmentReader(file, segment, where)
        if list(rows_of(reader)) != list(lines):
            raise ArchiveDamaged(f"{where}: reads back as something else; nothing was published")
        reader.close()
        self._part.shared.sound.add(segment.sha256)

    def _write_manifest(self, version: int, segments: Sequence[Segment]) -> None:
        if self._clock.monotonic() - self._began > WRITE_TIME:
            raise ArchiveTaken(f"{self._where()}: sealing took longer than {WRITE_TIME:g} s")
        name = manifest_name(self._part.folder, version)
        data = render(self._part.of, version, segments, self._clock.now_ms())
        if not self._objects.put_new(name, data):
            raise ArchiveTaken(f"{self._where()}: another writer has written version {version}")
        if version > KEPT_MANIFESTS:
            self._objects.delete(manifest_name(self._part.folder, version - KEPT_MANIFESTS))

    def copy(
        self, segment: Segment, lines: Iterable[SegmentRow], query: Query, hidden: Sequence[Query]
    ) -> Segment:
        def omit(row: EventRow, _: int) -> Omission | None:
            if any(query.wants(row) for query in hidden):
                return "forgotten"
            return None if query.wants(row) else "filtered"

        manifest = self._whole_manifest()
        retention_mark = RetentionMark(segment.judged.at or segment.made_at)
        rows = [self._omit_content(line, omit) for line in lines]
        return self._write_segment(manifest, manifest.segments, rows, retention_mark=retention_mark)

    def rows(self, segment: Segment) -> Iterator[SegmentRow]:
        try:
            yield from rows_of(self._part.open_segment(segment))
        except ArchiveDamaged as error:
            raise SegmentDamaged(str(error), segment.sha256) from error

    def _omit_content(self, line: SegmentRow, omit: Omit | None) -> SegmentRow:
        why = omit(_event_row(line), line.at) if omit and not line.omitted else None
        return line if why is None else without_content(line, why)

    def _where(self) -> str:
        return f"{self._objects.where}/{self._part.folder}"


def without_content(line: SegmentRow, why: Omission) -> SegmentRow:
    nobody = dict.fromkeys(("key", "session", "root", "parent", "agent", "user"), "")
    nowhere = dict.fromkeys(("workspace", "platform", "origin"), "")
    return msgspec.structs.replace(line, envelope=None, omitted=why, **nobody, **nowhere)


def _event_row(line: SegmentRow) -> EventRow:
    return EventRow(
        line.id.hex(),
        line.session,
        effective_type(line.type, line.v),
        *(line.agent, line.user, line.workspace, line.platform, line.origin, line.at),
    )


def _unsealed(manifest: Manifest, entries: Iterable[RawEntry]) -> Iterable[RawEntry]:
    """Yield the entries that are not sealed yet. `ValueError`: they are not in order."""
    place = parse_entry_id(manifest.end.entry) if manifest.end else (-1, -1)
    last = (-1, -1)
    for raw in entries:
        at = parse_entry_id(raw.entry)
        if at <= last:
            raise ValueError(f"entry {raw.entry} comes after {last[0]}-{last[1]}")
        last = at
        if at > place:
            yield raw


class _UnneededFiles(msgspec.Struct, frozen=True):
    """Files that may be deleted."""

    unnamed: Sequence[str] = ()  # files that no recent manifest names
    # files that only older recent manifests name; they go after these manifests
    outlived: Sequence[str] = ()


def _find_unneeded(
    folder: str,
    recent: Sequence[Manifest],
    stored: Mapping[str, StoredFile],
    before: int,
    damaged: Collection[str] = (),
) -> _UnneededFiles:
    """Return the segment files that nobody needs; pure.

    A reader may still use an older manifest and the files that it names, until `before` (wall time,
    ms). Every file is needed if a manifest is damaged, or the newest one names a missing file: a
    repair may use any of them. So are files with rows of `damaged` segments.
    """
    files = [{f"{folder}/{segment.file}" for segment in manifest.segments} for manifest in recent]
    if not recent or any(manifest.damage for manifest in recent) or not files[-1] <= stored.keys():
        return _UnneededFiles()
    lost = [segment for segment in recent[-1].segments if segment.sha256 in damaged]
    old = [
        name
        for name, file in stored.items()
        if name not in files[-1]
        and max(file.modified_at, _rewritten_at(recent[-1], name)) < before
        and not any(_has_rows_of(name, segment) for segment in lost)
    ]
    named = set[str]().union(*files)
    return _UnneededFiles(
        [one for one in old if one not in named], [one for one in old if one in named]
    )


def _rewritten_at(newest: Manifest, name: str) -> int:
    n, _ = _numbers_in_name(name)
    return max(
        (segment.made_at for segment in newest.segments if segment.first.n <= n <= segment.last.n),
        default=0,
    )


def _has_rows_of(name: str, segment: Segment) -> bool:
    first, last = _numbers_in_name(name)
    return first <= segment.last.n and segment.first.n <= last


def _numbers_in_name(name: str) -> tuple[int, int]:
    """Return the numbers of a file's first and last row from its name; zeros if it has none."""
    first, last, *_ = [*name.rpartition("/")[2].split("-"), "", ""]
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else (0, 0)
