"""Writing a partition's archive: seal, compact, clean; each ends with one new manifest (G7)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from memorybus.archive import tombstones
from memorybus.archive.decoding import seen_type
from memorybus.archive.format.manifest import NOT_JUDGED, Judged, Manifest, Segment, render
from memorybus.archive.format.parquet import RawEntry, SegmentRow, lines_of, sealed
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
"""Says of a row and its time (milliseconds) why its envelope is not kept any more, or None."""

CLEAN_AGE = 3_600.0
"""Seconds that a file stays which no recent manifest names: a reader, or a writer, may want it."""

WRITE_TIME = 600.0
"""Seconds that a writer may take from its first look to its manifest: far less than `CLEAN_AGE`."""


class Writer:
    """Writes one partition. Belongs to one thread; that there is one is the caller's lease."""

    def __init__(
        self, part: SealedPartition, decoder: Decoder, clock: Clock, crash: CrashPoint
    ) -> None:
        """Write nothing yet."""
        self._part = part
        self._objects = part.objects
        self._decoder = decoder
        self._clock = clock
        self._crash = crash
        self._began = clock.monotonic()

    def publish(self, entries: Iterable[RawEntry], omit: Omit | None, judged: Judged) -> Segment:
        """See `Archive.publish`."""
        known = self._whole()
        fresh = lines_of(self._part.of.partition, _following(known, entries), self._decoder)
        lines = [self._kept(line, omit) for line in fresh]
        if not lines:
            if not known.segments:
                raise ValueError("nothing to seal")
            return known.segments[-1]
        return self._put(known, known.segments, lines, judged=judged)

    def replace(self, segments: Sequence[Segment], omit: Omit | None, judged: Judged) -> Segment:
        """See `Archive.replace`."""
        known = self._whole()
        sums = [one.sha256 for one in known.segments]
        gone = [one.sha256 for one in segments]
        start = sums.index(gone[0]) if gone and gone[0] in sums else -1
        if start < 0 or sums[start : start + len(gone)] != gone:
            raise ArchiveTaken(f"{self._where()}: these segments are not neighbours there any more")
        lines = [self._kept(line, omit) for one in segments for line in self.lines(one)]
        rest = (known.segments[:start], known.segments[start + len(gone) :])
        return self._put(known, rest[0], lines, rest[1], judged)

    def clean(self, damaged: Collection[str]) -> int:
        """See `Archive.clean`."""
        before = round(self._clock.now_ms() - CLEAN_AGE * 1000)
        swept = self._swept(before)
        recent = self._recent()
        found = {one.name: one for one in self._objects.list(f"{self._part.folder}/segments")}
        chosen = _unneeded(self._part.folder, recent, found, before, damaged)
        if chosen.outlived:  # in a quiet partition no other manifest would ever follow
            for version in range(recent[-1].version + 1, recent[-1].version + KEPT_MANIFESTS):
                self._name(version, recent[-1].segments)
        for name in (*chosen.unnamed, *chosen.outlived):
            self._objects.delete(name)
        return swept + len(chosen.unnamed) + len(chosen.outlived)

    def _recent(self) -> list[Manifest]:
        """Return the manifests that stay, newest last; the others are deleted."""
        versions = self._part.versions()
        for version in versions[:-KEPT_MANIFESTS]:
            self._objects.delete(manifest_name(self._part.folder, version))
        return [self._part.load(version) for version in versions[-KEPT_MANIFESTS:]]

    def _swept(self, before: int) -> int:
        """Delete what writers left that died long ago; a living one takes minutes at most."""
        folders = (self._part.folder, f"{self._part.folder}/segments", tombstones.FOLDER)
        found = [one for folder in folders for one in self._objects.leftovers(folder)]
        dead = [one for one in found if one.modified_at < before]
        for one in dead:
            self._objects.delete(one.name)
        return len(dead)

    def _whole(self) -> Manifest:
        known = self._part.refreshed()
        if not known.whole:
            told = "; ".join(str(one) for one in known.damage)
            raise ArchiveDamaged(f"{self._where()}: nothing is added to a damaged manifest: {told}")
        return known

    def _put(
        self,
        known: Manifest,
        before: Sequence[Segment],
        lines: Sequence[SegmentRow],
        after: Sequence[Segment] = (),
        judged: Judged = NOT_JUDGED,
    ) -> Segment:
        """Write a segment, read it back, name it in the next manifest."""
        segment, data = sealed(self._part.of, lines, self._clock.now_ms(), judged)
        name = f"{self._part.folder}/{segment.file}"
        if not self._objects.put_new(name, data):
            raise ArchiveDamaged(f"{self._objects.where}/{name}: is there with other bytes")
        self._crash("archive.written")
        self._read_back(segment, name, lines)
        self._crash("archive.verified")
        self._name(known.version + 1, [*before, segment, *after])
        self._crash("archive.published")
        return self._part.refreshed().segments[len(before)]

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

    def _name(self, version: int, segments: Sequence[Segment]) -> None:
        if self._clock.monotonic() - self._began > WRITE_TIME:
            raise ArchiveTaken(f"{self._where()}: sealing took longer than {WRITE_TIME:g} s")
        name = manifest_name(self._part.folder, version)
        data = render(self._part.of, version, segments, self._clock.now_ms())
        if not self._objects.put_new(name, data):
            raise ArchiveTaken(f"{self._where()}: version {version} is another writer's")
        if version > KEPT_MANIFESTS:
            self._objects.delete(manifest_name(self._part.folder, version - KEPT_MANIFESTS))

    def copy(
        self, segment: Segment, lines: Iterable[SegmentRow], query: Query, hidden: Sequence[Query]
    ) -> Segment:
        """See `Archive.copy`."""

        def omit(row: EventRow, _: int) -> Omission | None:
            if any(one.wants(row) for one in hidden):
                return "forgotten"
            return None if query.wants(row) else "filtered"

        known = self._whole()
        judged = Judged(segment.judged.at or segment.made_at)
        rows = [self._kept(line, omit) for line in lines]
        return self._put(known, known.segments, rows, judged=judged)

    def lines(self, segment: Segment) -> Iterator[SegmentRow]:
        """Yield a segment's rows.

        Raises:
            SegmentDamaged: they cannot be read.
        """
        try:
            yield from rows_of(self._part.opened(segment))
        except ArchiveDamaged as error:
            raise SegmentDamaged(str(error), segment.sha256) from error

    def _kept(self, line: SegmentRow, omit: Omit | None) -> SegmentRow:
        why = omit(_row(line), line.at) if omit and not line.omitted else None
        return line if why is None else without(line, why)

    def _where(self) -> str:
        return f"{self._objects.where}/{self._part.folder}"


def without(line: SegmentRow, why: Omission) -> SegmentRow:
    """Return a row without its content and without what tells whose it was."""
    nobody = dict.fromkeys(("key", "session", "root", "parent", "agent", "user"), "")
    nowhere = dict.fromkeys(("workspace", "platform", "origin"), "")
    return msgspec.structs.replace(line, envelope=None, omitted=why, **nobody, **nowhere)


def _row(line: SegmentRow) -> EventRow:
    return EventRow(
        line.id.hex(),
        line.session,
        seen_type(line.type, line.v),
        *(line.agent, line.user, line.workspace, line.platform, line.origin, line.at),
    )


def _following(known: Manifest, entries: Iterable[RawEntry]) -> Iterable[RawEntry]:
    """Yield the entries that are not sealed yet.

    Raises:
        ValueError: they are not in order.
    """
    place = parse_entry_id(known.end.entry) if known.end else (-1, -1)
    last = (-1, -1)
    for raw in entries:
        at = parse_entry_id(raw.entry)
        if at <= last:
            raise ValueError(f"entry {raw.entry} comes after {last[0]}-{last[1]}")
        last = at
        if at > place:
            yield raw


class _UnneededFiles(msgspec.Struct, frozen=True):
    """Files that may be deleted.

    Attributes:
        unnamed: those that no recent manifest names.
        outlived: those that only the older ones of them name; to be deleted when these are gone.
    """

    unnamed: Sequence[str] = ()
    outlived: Sequence[str] = ()


def _unneeded(
    folder: str,
    recent: Sequence[Manifest],
    found: Mapping[str, StoredFile],
    before: int,
    damaged: Collection[str] = (),
) -> _UnneededFiles:
    """Return the segments that nobody needs; pure.

    A file is needed for as long as a reader may still have the manifest that named it, which its
    own age does not tell: it counts from when its rows were written anew. Where a manifest is
    damaged, or the newest one names a file that is missing, all are: what it takes to mend that
    may be among them. So may be, for a segment that cannot be read, what has rows of its numbers.

    Args:
        folder: the partition's.
        recent: its manifests, newest last.
        found: its segments by name.
        before: what was written, or written anew, since then stays (wall time, milliseconds).
        damaged: the SHA-256 of segments that cannot be read.
    """
    files = [{f"{folder}/{one.file}" for one in manifest.segments} for manifest in recent]
    if not recent or not all(one.whole for one in recent) or not files[-1] <= found.keys():
        return _UnneededFiles()
    lost = [one for one in recent[-1].segments if one.sha256 in damaged]
    old = [
        name
        for name, one in found.items()
        if name not in files[-1]
        and max(one.modified_at, _written_anew(recent[-1], name)) < before
        and not any(_has_rows_of(name, segment) for segment in lost)
    ]
    named = set[str]().union(*files)
    return _UnneededFiles(
        [one for one in old if one not in named], [one for one in old if one in named]
    )


def _written_anew(newest: Manifest, name: str) -> int:
    """Return when the rows of a file that is not named were written anew; 0 if they were not."""
    n, _ = _numbers(name)
    return max(
        (one.made_at for one in newest.segments if one.first.n <= n <= one.last.n), default=0
    )


def _has_rows_of(name: str, segment: Segment) -> bool:
    first, last = _numbers(name)
    return first <= segment.last.n and segment.first.n <= last


def _numbers(name: str) -> tuple[int, int]:
    """Return the numbers of a file's first and last row, as its name tells; 0 if it does not."""
    first, last, *_ = [*name.rpartition("/")[2].split("-"), "", ""]
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else (0, 0)
