"""Reads one partition's archive, ahead on a thread; keeps its manifest, a segment and a group."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import BinaryIO

from memorybus.archive import tombstones
from memorybus.archive.format.manifest import (
    EMPTY_MANIFEST,
    LogPartition,
    Manifest,
    Segment,
    parse,
)
from memorybus.archive.format.reader import Group, SegmentReader, naming_file
from memorybus.archive.objects.store import Objects
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import Clock
from memorybus.errors import ArchiveDamaged
from memorybus.ids import sha256_of
from memorybus.log.entry import EntryMoment, parse_entry_id
from memorybus.query.query import Query
from memorybus.redis.keys import lane_name

GroupKey = tuple[str, int, tuple[str, ...]]
"""A group: its segment's SHA-256, its number there, and the columns that are read."""

IDLE_SECONDS = 1.0  # seconds without anything to read after which the thread ends


class PendingGroup:
    """A group that is being read. Unpacking and hashing release the GIL and use another core."""

    def __init__(self, key: GroupKey, read: Callable[[], Group]) -> None:
        self.key = key  # names the group
        self._read = read
        self._group: Group | None = None
        self._error: Exception | None = None
        self._done = Event()

    def run(self) -> None:
        """Read the group; an error is kept and raised by `result`."""
        try:
            self._group = self._read()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> None:
        self._done.wait()

    def result(self) -> Group:
        self._done.wait()
        if self._group is None:
            raise self._error or RuntimeError(f"group {self.key} was not read")
        return self._group


class ReadAheadThread:
    """The thread that reads ahead. It ends after `IDLE_SECONDS` without work.

    Starting a thread for each group would cost half as much time as reading the group.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[PendingGroup] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()

    def begin(self, group: PendingGroup) -> PendingGroup:
        with self._lock:
            self._queue.put(group)
            if self._thread is None or not self._thread.is_alive():  # a forked child lacks it
                self._thread = Thread(target=self._run, name="memorybus-ahead", daemon=True)
                self._thread.start()
        return group

    def _run(self) -> None:
        while (group := self._next()) is not None:
            group.run()
            del group  # else the group would stay in memory until the next one

    def _next(self) -> PendingGroup | None:
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._lock:
                if not self._queue.empty():
                    return self._queue.get()
                self._thread = None
                return None


KEPT_MANIFESTS = 3
"""How many manifests of a partition are kept, with their segments: the newest ones."""

TOMBSTONE_AGE = 5.0  # seconds after which a reader looks for new tombstones
_PREFIX, _SUFFIX = "manifest-", ".jsonl"


def manifest_name(folder: str, version: int) -> str:
    return f"{folder}/{_PREFIX}{version:012d}{_SUFFIX}"


class SharedKnowledge:
    """What the partitions of one archive share: which files are sound, and the tombstones."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self.objects = objects
        self.sound: set[str] = set()
        self._clock = clock
        self._tombstones: dict[str, Tombstone] = {}
        self._looked_at = float("-inf")

    def forgotten_queries(self) -> tuple[Query, ...]:
        """Return the queries of the tombstones; nobody may read what they match."""
        now = self._clock.monotonic()
        if now - self._looked_at >= TOMBSTONE_AGE:
            self._tombstones = tombstones.read_all(self.objects, self._tombstones)
            self._looked_at = now
        return tuple(tombstone.query for tombstone in self._tombstones.values())

    def forget_tombstones(self) -> None:
        """Have the next read look for tombstones again."""
        self._looked_at = float("-inf")


class SealedPartition:
    """Reads one partition. Belongs to one thread."""

    def __init__(self, of: LogPartition, shared: SharedKnowledge, aside: ReadAheadThread) -> None:
        self.of = of
        self.folder = lane_name(of.partition)
        self.shared = shared
        self.objects = shared.objects
        self._manifest = EMPTY_MANIFEST
        self._lasts: list[EntryMoment] = []
        self._open: SegmentReader | None = None
        self._groups: dict[GroupKey, Group] = {}
        self._read_ahead_thread = aside
        self._ahead: PendingGroup | None = None
        self._following: SegmentReader | None = None

    # -- the manifest ---------------------------------------------------------------------------

    def versions(self) -> list[int]:
        """Return the numbers of the manifests that are there, newest last."""
        names = [file.name.rpartition("/")[2] for file in self.objects.list(self.folder)]
        numbers = [name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in names]
        return sorted(int(number) for number in numbers if number.isascii() and number.isdigit())

    def newest_manifest(self) -> Manifest:
        """Return the newest manifest, after a look for one that is newer than the known one."""
        newest = max(self.versions(), default=0)
        if newest != self._manifest.version:
            self._manifest = self._load_newest(newest)
            self._lasts = [
                parse_entry_id(segment.last.entry) for segment in self._manifest.segments
            ]
        return self._manifest

    def _load_newest(self, version: int) -> Manifest:
        """Load a manifest; if it is damaged, an archiver may have replaced it, so look again."""
        manifest = self.load(version)
        while manifest.damage and (again := max(self.versions(), default=0)) != version:
            version, manifest = again, self.load(again)
        return manifest

    def load(self, version: int) -> Manifest:
        """Return a manifest by its number; 0 is that of a partition without sealed events."""
        if version == 0:
            return EMPTY_MANIFEST
        name = manifest_name(self.folder, version)
        return parse(self.objects.get(name) or b"", self.of, version, name)

    # -- segments -------------------------------------------------------------------------------

    def open_segment(self, segment: Segment) -> SegmentReader:
        """Open a segment for the caller to read; its SHA-256 is checked the first time."""
        self._finish_read_ahead()
        return self._reader(segment)

    def group_after(self, segment: Segment, place: EntryMoment) -> int:
        """Return the number of the group that holds a segment's first row after a moment."""
        return self._reader(segment).group_after(place)

    def _reader(self, segment: Segment) -> SegmentReader:
        """Return an open segment; before reading from it, finish what is being read ahead."""
        if self._open is None or self._open.segment.sha256 != segment.sha256:
            self._open = self._take_opened_ahead(segment) or self._open_reader(segment)
        return self._open

    def _take_opened_ahead(self, segment: Segment) -> SegmentReader | None:
        """Close the open segment; return the next one if it was opened ahead, else None."""
        ahead, following = self._finish_read_ahead(), self._following
        if following is None or following.segment.sha256 != segment.sha256:
            self.close()
            return None
        self._following = None
        self.close()
        self._ahead = ahead
        return following

    def _open_reader(self, segment: Segment) -> SegmentReader:
        return SegmentReader(self._open_checked(segment), segment, self._where(segment))

    def _open_checked(self, segment: Segment) -> BinaryIO:
        where = self._where(segment)
        file = self.objects.open(f"{self.folder}/{segment.file}")
        if file is None:
            raise ArchiveDamaged(f"{where}: is missing; restore it from a backup")
        if segment.sha256 not in self.shared.sound:
            with naming_file(where):
                digest = sha256_of(file)
            if digest != segment.sha256:
                SegmentReader(file, segment, where).close()  # it may raise a clearer error
                raise ArchiveDamaged(
                    f"{where}: is not what was sealed (SHA-256 {digest[:12]}…, the manifest "
                    f"has {segment.sha256[:12]}…); restore it from a backup"
                )
            self.shared.sound.add(segment.sha256)
        return file

    def _where(self, segment: Segment) -> str:
        return f"{self.objects.where}/{self.folder}/{segment.file}"

    def close(self) -> None:
        self._finish_read_ahead()
        for reader in (self._open, self._following):
            if reader is not None:
                reader.close()
        self._open = self._following = None
        self._groups = {}

    def group(self, segment: Segment, index: int, names: tuple[str, ...]) -> Group:
        key = (segment.sha256, index, names)
        if key not in self._groups:
            ahead = self._finish_read_ahead()
            if ahead is not None and ahead.key == key:
                group = ahead.result()
            else:
                group = self._reader(segment).group(index, names)
            kept = {k: v for k, v in self._groups.items() if k[:2] == key[:2]}
            self._groups = {**kept, key: group}
        return self._groups[key]

    def read_ahead(self, segment: Segment, index: int, names: tuple[str, ...]) -> None:
        """Begin to read the group that is needed next: this one, or the next segment's first."""
        reader = self._reader(segment)
        if index < reader.groups:
            self._begin_reading((segment.sha256, index, names), lambda: reader.group(index, names))
        elif (
            following := self.known_segment_after(parse_entry_id(segment.last.entry))
        ) is not None:
            self._begin_reading(
                (following.sha256, 0, names), lambda: self._read_first_group(following, names)
            )

    def _begin_reading(self, key: GroupKey, read: Callable[[], Group]) -> None:
        if self._ahead is None or self._ahead.key != key:
            self._finish_read_ahead()
            self._ahead = self._read_ahead_thread.begin(PendingGroup(key, read))

    def _read_first_group(self, segment: Segment, names: tuple[str, ...]) -> Group:
        if self._following is not None:
            self._following.close()
        self._following = self._open_reader(segment)
        return self._following.group(0, names)

    def _finish_read_ahead(self) -> PendingGroup | None:
        """Wait for the group that is being read ahead, since a file has one reader; return it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.wait()
        return ahead

    def reopen(self) -> None:
        """Look at the newest manifest again, and open files anew."""
        self.close()
        self.newest_manifest()

    def is_replaced(self, segment: Segment, place: EntryMoment) -> bool:
        """Look at the newest manifest: say whether compaction has replaced a segment meanwhile."""
        self.reopen()
        again = self.known_segment_after(place)
        return again is not None and again.sha256 != segment.sha256

    def naming_file(self, segment: Segment) -> AbstractContextManager[None]:
        """Return a context in which errors of the segment's rows name its file."""
        return naming_file(self._where(segment))

    # -- where a place is -----------------------------------------------------------------------

    def segment_after(self, place: EntryMoment) -> Segment | None:
        if not self._lasts or place >= self._lasts[-1]:
            self.newest_manifest()
        index = bisect_right(self._lasts, place)
        if index == len(self._lasts):
            self.check_whole()
            return None
        return self._manifest.segments[index]

    def known_segment_after(self, place: EntryMoment) -> Segment | None:
        """Return the next segment that the manifest names, even if it is damaged behind that."""
        index = bisect_right(self._lasts, place)
        return self._manifest.segments[index] if index < len(self._lasts) else None

    def segment_before(self, place: EntryMoment) -> Segment | None:
        segment = last_segment_before(self.newest_manifest().segments, place)
        ms, sequence = parse_entry_id(segment.last.entry) if segment else (0, 0)
        if place > (ms, sequence + 1):  # a lost segment may lie between
            self.segment_after((ms, sequence))
        return segment

    def check_whole(self) -> None:
        """Make sure that the known manifest is as it was written."""
        if self._manifest.damage is not None:
            raise ArchiveDamaged(
                f"{self.objects.where}: the manifest is damaged: {self._manifest.damage}. Nothing "
                f"behind that is read, and nothing is added. Restore this file from a copy of the "
                f'archive, as docs/history.md says under "Back up and restore"'
            )


def last_segment_before(segments: Sequence[Segment], place: EntryMoment) -> Segment | None:
    index = bisect_left(segments, place, key=lambda segment: parse_entry_id(segment.first.entry))
    return segments[index - 1] if index else None
