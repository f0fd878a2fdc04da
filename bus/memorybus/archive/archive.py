"""The archive: a log's sealed past outside Redis, in segments that any engine can query.

It lies below ``<namespace>/<log id>/`` of its place: a folder ``p07`` for each partition with
numbered manifests and ``segments/``, and ``tombstones/``. Nothing is ever changed in place; the
newest manifest says what is sealed, and that only one writer can publish the next one is the fence
of its own (G5, G7). Reading changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from memorybus.archive import tombstones
from memorybus.archive.format.manifest import NOT_JUDGED, Damage, Judged, LogPartition, Segment
from memorybus.archive.format.parquet import RawEntry
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.objects.store import Objects, open_objects
from memorybus.archive.partition import SealedPartition, TwinKnowledge, last_before
from memorybus.archive.read_ahead import ReadAheadThread
from memorybus.archive.rows import SealedRow, SealedRows
from memorybus.archive.tombstones import Tombstone
from memorybus.archive.verification import FileReport, check
from memorybus.archive.writer import Omit, Writer
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.log.entry import LoggedEvent, Place, parse_entry_id
from memorybus.log.stream import START
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, Plan
from memorybus.testing import CrashPoint, no_crash
from memorybus.wire.codec import Decoder


class Archive:
    """A log's archive. Belongs to one thread; `twin` gives another thread its own.

    Every method but `of` and `twin` raises `ArchiveUnavailable` if the store does not answer or the
    extra ``archive`` is not installed, and `ArchiveDamaged` for what is not as it was written.
    """

    def __init__(
        self,
        objects: Objects,
        namespace: str,
        log_id: str,
        *,
        clock: Clock = SYSTEM,
        crash: CrashPoint = no_crash,
        shared: TwinKnowledge | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            objects: the files below the log's folder.
            namespace: of the Redis keys.
            log_id: the field ``log`` of ``{ns}:meta``.
            clock: times of sealing, and how old tombstones known here may be.
            crash: the places to die at, for fault tests.
            shared: what twins know together.
        """
        self.objects = objects
        self._namespace = namespace
        self._log_id = log_id
        self._clock = clock
        self._crash = crash
        self._shared = shared or TwinKnowledge(objects, clock)
        self._aside, self._decoder = ReadAheadThread(), Decoder()
        self._partitions: dict[int, SealedPartition] = {}

    @classmethod
    def of(
        cls,
        settings: Settings,
        log_id: str,
        *,
        clock: Clock = SYSTEM,
        crash: CrashPoint = no_crash,
    ) -> "Archive":
        """Return the archive of the log that the settings mean; nothing is read or made.

        Raises:
            ConfigError: the setting ``archive`` is no place.
            ArchiveUnavailable: it is an object store, and the extra ``archive`` is missing.
        """
        place = settings.archive or str(settings.data_dir / "archive")
        objects = open_objects(place, f"{settings.namespace}/{log_id}")
        return cls(objects, settings.namespace, log_id, clock=clock, crash=crash)

    def twin(self) -> "Archive":
        """Return the same archive for another thread; what was checked is not checked again."""
        return Archive(
            self.objects,
            self._namespace,
            self._log_id,
            clock=self._clock,
            crash=self._crash,
            shared=self._shared,
        )

    @property
    def where(self) -> str:
        """Where it is, without credentials."""
        return self.objects.where

    def close(self) -> None:
        """Close the open segments; they are opened again when they are needed."""
        for part in self._partitions.values():
            part.close()

    # -- reading --------------------------------------------------------------------------------

    def read(
        self, partition: int, after: str = START, count: int = 500, plan: Plan = WHOLE
    ) -> list[LoggedEvent]:
        """Return up to `count` sealed events after a place, in order; none if nothing follows.

        What the plan or a tombstone leaves out, and what was not kept, comes as a placeholder
        (`OMITTED`) at its position, so that the numbers stay dense.

        Args:
            partition: which one.
            after: entry id, exclusive.
            count: at most so many.
            plan: what is wanted; rows of other spans or another query are not decoded.
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
        damage: list[str] | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the wanted sealed events of a partition in order, without placeholders.

        Whole segments are passed over where the manifest tells that they hold nothing wanted: the
        cost is that of the segments where the sessions are.

        Args:
            partition: which one.
            plan: what is wanted.
            after: entry id, exclusive.
            since: the earliest time of an event, milliseconds.
            until: the time before which events are wanted, milliseconds.
            damage: if given, what cannot be read is told here, and the rest is read.

        Raises:
            ArchiveDamaged: a part cannot be read, and `damage` is None.
        """
        return self._rows(partition).scan(plan, after, (since, until), damage)

    def back(
        self, partition: int, before: str, plan: Plan = WHOLE, damage: list[str] | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield the sealed events before an entry, newest first, with placeholders as `read`.

        Segments that hold nothing wanted are passed over. `damage`, and what is raised: see `scan`.
        """
        return self._rows(partition).back(before, plan, damage)

    def ids(self, partition: int) -> Iterator[Sequence[str]]:
        """Yield the ids of all rows, a group at a time, also of those without content by now."""
        return self._rows(partition).ids()

    def places(self, partition: int, first: str, last: str) -> Iterator[SealedRow]:
        """Yield where the rows from one entry to another lie, both included, and their events."""
        return self._rows(partition).places(first, last)

    def has(self, partition: int, entry: str) -> bool:
        """Say whether an entry is sealed."""
        ms, sequence = parse_entry_id(entry)
        found = self._rows(partition).before((ms, sequence + 1))
        return found is not None and found.position.entry == entry

    def before(self, partition: int, entry: str) -> LoggedEvent | None:
        """Return the last sealed event before a place, None if there is none."""
        return self._rows(partition).before(parse_entry_id(entry))

    def end(self, partition: int) -> Place | None:
        """Return the last sealed place, as the newest manifest says; None if nothing is sealed."""
        return self._of(partition).refreshed().end

    def segments(self, partition: int) -> tuple[Segment, ...]:
        """Return what is sealed, in order, as the newest manifest says."""
        return self._of(partition).refreshed().segments

    def segment_of(self, partition: int, entry: str) -> str:
        """Return the file of the segment that covers an entry, "" if none does."""
        ms, sequence = parse_entry_id(entry)
        found = last_before(self.segments(partition), (ms, sequence + 1))
        return found.file if found and parse_entry_id(found.last.entry) >= (ms, sequence) else ""

    def damage(self, partition: int) -> tuple[Damage, ...]:
        """Return what the newest manifest of a partition has of damage in itself."""
        return self._of(partition).refreshed().damage

    # -- writing --------------------------------------------------------------------------------

    def publish(
        self,
        partition: int,
        entries: Iterable[RawEntry],
        omit: Omit | None = None,
        judged: Judged = NOT_JUDGED,
    ) -> Segment:
        """Seal entries: write a segment, read it back, then name it in a new manifest (G7).

        Entries that are sealed already are passed over, so that a repeated call adds no row twice.
        A segment holds at most `SEGMENT_BYTES` of envelopes: the rest is for the next call.

        Args:
            partition: whose.
            entries: in order, those that follow the last sealed one.
            omit: as for `replace`: what is not kept any more is never written.
            judged: as of when `omit` decides.

        Returns:
            The new segment, or the last one if all were sealed; its `last` tells how far.

        Raises:
            ArchiveTaken: another writer published first.
            ArchiveDamaged: what was written cannot be read back, or the manifest is not whole.
            ValueError: no entries, or not in order.
        """
        return self._writer(partition).publish(entries, omit, judged)

    def replace(
        self,
        partition: int,
        segments: Sequence[Segment],
        omit: Omit | None = None,
        judged: Judged = NOT_JUDGED,
    ) -> Segment:
        """Write neighbouring segments anew as one, with a new manifest; for compaction.

        Args:
            partition: whose.
            segments: as `segments` returned them, neighbours in order; one alone may be rewritten.
            omit: returns why an event is not kept any more, or None: its row stays, without its
                envelope and without what tells whose it was.
            judged: as of when `omit` decides.

        Raises:
            ArchiveTaken: another writer published first, or the segments are no longer there.
            ArchiveDamaged: as for `publish`, or a segment cannot be read.
        """
        return self._writer(partition).replace(segments, omit, judged)

    def copy(self, source: "Archive", segment: Segment, query: Query) -> Segment:
        """Seal here what a segment of another archive of this log holds; for an export.

        What the query, or a tombstone there, leaves out keeps its row without content and owner.
        """
        partition = segment.of.partition
        hidden = tuple(one.query for one in source.tombstones())
        lines = source._writer(partition).lines(segment)  # noqa: SLF001  the same class
        return self._writer(partition).copy(segment, lines, query, hidden)

    def beside(self, directory: Path) -> "Archive":
        """Return the archive of this log in another directory, where there may be none yet."""
        objects = LocalObjects(directory.absolute() / self._namespace / self._log_id)
        return Archive(objects, self._namespace, self._log_id, clock=self._clock)

    def clean(self, partition: int, damaged: Collection[str] = ()) -> int:
        """Delete the files that nobody has needed for an hour; return how many.

        What has rows of `damaged` segments (their SHA-256) stays: it may mend them.
        """
        return self._writer(partition).clean(damaged)

    def forget(self, tombstone: Tombstone) -> bool:
        """Write a tombstone, False if there is another of its id; readers elsewhere obey soon."""
        done = tombstones.put(self.objects, tombstone)
        self._shared.forget_tombstones()
        return done

    def tombstones(self) -> list[Tombstone]:
        """Return the tombstones."""
        return list(tombstones.read_all(self.objects, {}).values())

    # -- checking -------------------------------------------------------------------------------

    def verify(self, partitions: Iterable[int]) -> Iterator[FileReport]:
        """Check manifests and every segment's bytes; yield a report for each file, as they go."""
        for partition in partitions:
            yield from check(self._of(partition))

    def _of(self, partition: int) -> SealedPartition:
        if partition not in self._partitions:
            of = LogPartition(self._namespace, self._log_id, partition)
            self._partitions[partition] = SealedPartition(of, self._shared, self._aside)
        return self._partitions[partition]

    def _rows(self, partition: int) -> SealedRows:
        return SealedRows(self._of(partition), self._decoder)

    def _writer(self, partition: int) -> Writer:
        return Writer(self._of(partition), self._decoder, self._clock, self._crash)
