"""The archive: a log's sealed past outside Redis, in segments that any engine can query.

It lies below ``<namespace>/<log id>/`` of its place. Each partition has a folder, such as ``p07``,
with numbered manifests and ``segments/``; ``tombstones/`` stands beside these folders. No file is
ever changed. The newest manifest says what is sealed. Only one writer can publish the next one:
this is the archive's own fence (G5, G7). Reading changes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memorybus.archive import tombstones
from memorybus.archive.format.figures import FIGURES_VERSION
from memorybus.archive.format.manifest import (
    NO_RETENTION_MARK,
    LogPartition,
    RetentionMark,
    Segment,
)
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.objects.opening import open_objects
from memorybus.archive.objects.store import Objects
from memorybus.archive.partition import (
    ReadAheadThread,
    SealedPartition,
    SharedKnowledge,
    last_segment_before,
)
from memorybus.archive.rows import SealedRow, SealedRows
from memorybus.archive.tombstones import RAISE_DAMAGE, DamageHandler, Tombstone
from memorybus.archive.verification import FileReport, check_partition
from memorybus.archive.writer import Omit, PartitionWriter
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.log.entry import LoggedEvent, Place, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.testing import CrashPoint, no_crash
from memorybus.wire.codec import Decoder


class CountableSegment(NamedTuple):
    """A segment as insights read it."""

    path: str  # its file, if it is on this disk and has the column of figures; else ""
    load: Callable[[], Any]  # returns its rows (`pyarrow.Table`)


def _counted_rows(part: SealedPartition, segment: Segment) -> Any:
    return part.open_segment(segment).counted()


class Archive:
    """A log's archive. Belongs to one thread."""

    def __init__(
        self,
        objects: Objects,
        namespace: str,
        log_id: str,
        *,
        clock: Clock = SYSTEM,
        crash: CrashPoint = no_crash,
    ) -> None:
        self.objects = objects
        self._namespace = namespace
        self._log_id = log_id
        self._clock = clock
        self._crash = crash
        self._shared = SharedKnowledge(objects, clock)
        self._read_ahead_thread, self._decoder = ReadAheadThread(), Decoder()
        self._partitions: dict[int, SealedPartition] = {}

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        log_id: str,
        *,
        clock: Clock = SYSTEM,
        crash: CrashPoint = no_crash,
    ) -> "Archive":
        """Return the archive that the settings name, for one log; nothing is read or created."""
        place = settings.archive or str(settings.data_dir / "archive")
        objects = open_objects(place, f"{settings.namespace}/{log_id}")
        return cls(objects, settings.namespace, log_id, clock=clock, crash=crash)

    @property
    def where(self) -> str:
        """Where the archive is, without credentials."""
        return self.objects.where

    def close(self) -> None:
        """Close the open segments; a later read opens them again."""
        for part in self._partitions.values():
            part.close()

    # -- reading --------------------------------------------------------------------------------

    def read(
        self, partition: int, after: str = START, count: int = 500, plan: Plan = WHOLE
    ) -> list[LoggedEvent]:
        """Return up to `count` sealed events after an entry, in order.

        What is left out comes as a placeholder (`OMITTED_ENVELOPES`), so that the numbers stay
        dense.
        """
        return self._rows(partition).read(after, count, plan)

    def scan(
        self,
        partition: int,
        plan: Plan = WHOLE,
        *,
        after: str = START,
        since: int | None = None,
        until: int | None = None,
        damage: DamageHandler = RAISE_DAMAGE,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted sealed events of a partition in order, without placeholders.

        Segments without a wanted event are skipped. `since` and `until` are milliseconds.
        """
        return self._rows(partition).scan(plan, after, (since, until), damage)

    def read_backward(
        self, partition: int, before: str, plan: Plan = WHOLE, damage: DamageHandler = RAISE_DAMAGE
    ) -> Iterator[LoggedEvent]:
        """Yield the sealed events before an entry, newest first, with placeholders as in `read`."""
        return self._rows(partition).read_backward(before, plan, damage)

    def ids(self, partition: int) -> Iterator[Sequence[str]]:
        """Yield the event ids of all rows, a group at a time, also of rows without content."""
        return self._rows(partition).ids()

    def places(self, partition: int, first: str, last: str) -> Iterator[SealedRow]:
        """Yield the place and event id of each row from `first` to `last`, both included."""
        return self._rows(partition).places(first, last)

    def has(self, partition: int, entry: str) -> bool:
        ms, sequence = parse_entry_id(entry)
        event = self._rows(partition).last_before((ms, sequence + 1))
        return event is not None and event.position.entry == entry

    def last_before(self, partition: int, entry: str) -> LoggedEvent | None:
        return self._rows(partition).last_before(parse_entry_id(entry))

    def end(self, partition: int) -> Place | None:
        """Return the last sealed place from the newest manifest; None if nothing is sealed."""
        part = self._partition(partition)
        end = part.newest_manifest().end
        part.check_whole()
        return end

    def segments(self, partition: int) -> tuple[Segment, ...]:
        """Return the sealed segments in order, from the newest manifest."""
        return self._partition(partition).newest_manifest().segments

    def segment_of(self, partition: int, entry: str) -> str:
        ms, sequence = parse_entry_id(entry)
        segment = last_segment_before(self.segments(partition), (ms, sequence + 1))
        return (
            segment.file if segment and parse_entry_id(segment.last.entry) >= (ms, sequence) else ""
        )

    def countable(self, partition: int, since: int) -> Iterator[CountableSegment]:
        """Yield the segments whose rows insights count, but none that ends before `since` (ms)."""
        part = self._partition(partition)
        for segment in self.segments(partition):
            if segment.until >= since:
                path = self.objects.path_of(f"{part.folder}/{segment.file}")
                yield CountableSegment(
                    path if segment.figures == FIGURES_VERSION else "",
                    partial(_counted_rows, part, segment),
                )
        part.check_whole()

    # -- writing --------------------------------------------------------------------------------

    def publish(
        self,
        partition: int,
        entries: Iterable[RawEntry],
        omit: Omit | None = None,
        retention_mark: RetentionMark = NO_RETENTION_MARK,
    ) -> Segment:
        """Seal entries: write a segment, read it back, then name it in a new manifest (G7).

        Sealed entries are skipped, so that a repeated call adds no row twice. A segment holds at
        most `SEGMENT_BYTES` of envelopes: the next call seals the rest. Returns the newest segment.
        """
        return self._writer(partition).publish(entries, omit, retention_mark)

    def replace(
        self,
        partition: int,
        segments: Sequence[Segment],
        omit: Omit | None = None,
        retention_mark: RetentionMark = NO_RETENTION_MARK,
    ) -> Segment:
        """Write neighbouring segments again as one, with a new manifest; for compaction.

        `omit` returns why an event's content is not kept, or None. Its row stays, without its
        envelope and its owner.
        """
        return self._writer(partition).replace(segments, omit, retention_mark)

    def copy(self, source: "Archive", segment: Segment, query: Query) -> Segment:
        """Copy a segment of another archive of this log; unwanted rows lose their content."""
        partition = segment.of.partition
        hidden = tuple(tombstone.query for tombstone in source.tombstones())
        lines = source._writer(partition).rows(segment)  # noqa: SLF001  the same class
        return self._writer(partition).copy(segment, lines, query, hidden)

    def in_directory(self, directory: Path) -> "Archive":
        """Return this log's archive in another directory; that one need not exist yet."""
        objects = LocalObjects(directory.absolute() / self._namespace / self._log_id)
        return Archive(objects, self._namespace, self._log_id, clock=self._clock)

    def clean(self, partition: int, damaged: Collection[str] = ()) -> int:
        """Delete files unneeded for an hour, but none with rows of `damaged` segments."""
        return self._writer(partition).clean(damaged)

    def forget(self, tombstone: Tombstone) -> bool:
        """Write a tombstone; False if its id is taken. Other readers see it within seconds."""
        done = tombstones.write(self.objects, tombstone)
        self._shared.forget_tombstones()
        return done

    def tombstones(self) -> list[Tombstone]:
        return list(tombstones.read_all(self.objects, {}).values())

    # -- checking -------------------------------------------------------------------------------

    def verify(self, partitions: Iterable[int]) -> Iterator[FileReport]:
        """Check the manifests and all bytes of the segments; yield a report for each file."""
        for partition in partitions:
            yield from check_partition(self._partition(partition))

    def _partition(self, partition: int) -> SealedPartition:
        if partition not in self._partitions:
            of = LogPartition(self._namespace, self._log_id, partition)
            self._partitions[partition] = SealedPartition(of, self._shared, self._read_ahead_thread)
        return self._partitions[partition]

    def _rows(self, partition: int) -> SealedRows:
        return SealedRows(self._partition(partition), self._decoder)

    def _writer(self, partition: int) -> PartitionWriter:
        return PartitionWriter(self._partition(partition), self._decoder, self._clock, self._crash)
