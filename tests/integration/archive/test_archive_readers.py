"""Readers of the archive: ahead on another thread, and while an archiver writes it anew (G7)."""

import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.archive.archives import LOG, archive_in, entries, pages, sealed
from helpers.processes.forked import in_child
from helpers.processes.waiting import wait_until
from memorybus.archive import partition
from memorybus.archive.archive import Archive
from memorybus.archive.format.reader import Group, SegmentReader
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.partition import PendingGroup, ReadAheadThread
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import Query
from memorybus.query.ranges import NumberRange, Plan

SIZE, SEGMENTS = 20, 4
SESSION = Plan(query=Query(sessions=("s-3",)))
SPAN = Plan(spans={0: (NumberRange(5, 75),)})


def joined(directory: Path) -> Path:
    """Join all segments, and delete the old ones as is done an hour later; return the new one."""
    writer = archive_in(directory)
    old = writer.segments(0)
    new = writer.replace(0, old)
    for one in old:
        (directory / "p00" / one.file).unlink()
    return directory / "p00" / new.file


def test_without_the_extra_a_reader_is_told_what_to_install(tmp_path, monkeypatch):
    """G7: where pyarrow is missing the archive is away, not damaged, and the error says so."""
    sealed(tmp_path, 1, SIZE)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ArchiveUnavailable, match="pip install"):
        archive_in(tmp_path).read(0)


@pytest.mark.parametrize("plan", [Plan(), SESSION, SPAN], ids=["all", "session", "span"])
@pytest.mark.parametrize("listens", [False, True])
def test_a_scan_goes_on_behind_a_compaction(tmp_path, plan, listens):
    """G7: a scan whose segments are compacted away meanwhile yields every row once, untold."""
    sealed(tmp_path, SEGMENTS, SIZE)
    wanted = list(archive_in(tmp_path).scan(0, plan))
    told: list[str] = []
    reading = archive_in(tmp_path).scan(0, plan, damage=DamageHandler(told if listens else None))
    found = [next(reading) for _ in range(len(wanted) // 3)]
    joined(tmp_path)
    assert [*found, *reading] == wanted
    assert told == []


def test_a_scan_is_told_of_damage_behind_a_compaction(tmp_path):
    """G7: what is damaged where it was written anew is told once, and the scan ends."""
    known = sealed(tmp_path, SEGMENTS, SIZE)
    told: list[str] = []
    reading = archive_in(tmp_path).scan(0, damage=DamageHandler(told))
    found = [next(reading) for _ in range(SIZE)]
    file = joined(tmp_path)
    file.write_bytes(file.read_bytes()[:100])
    assert [*found, *reading] == known[:SIZE]
    assert [file.name in one for one in told] == [True]


def test_ids_go_on_behind_a_compaction(tmp_path):
    """G2, G7: whoever asks for all ids gets each once, though segments are compacted meanwhile."""
    known = sealed(tmp_path, SEGMENTS, SIZE)
    reading = archive_in(tmp_path).ids(0)
    found = list(next(reading))
    file = joined(tmp_path)
    assert [*found, *(one for ids in reading for one in ids)] == [x.envelope.id for x in known]
    file.unlink()
    with pytest.raises(ArchiveDamaged, match="is missing"):
        list(archive_in(tmp_path).ids(0))


def test_ids_are_read_when_nobody_else_reads_the_file(tmp_path, monkeypatch):
    """A segment's file has one reader at a time, also when a thread has begun to read ahead."""
    archive = archive_in(tmp_path)
    archive.publish(0, entries(3_000))
    order: list[str] = []
    free = threading.Event()
    group, wait = SegmentReader.group, PendingGroup.wait

    def noted(self: SegmentReader, index: int, names: Sequence[str] = ()) -> Group:
        ahead = threading.current_thread().name == "memorybus-ahead"
        assert not ahead or free.wait(10)
        found = group(self, index, names)
        order.append("ahead" if ahead else "ids" if "id" in names else "page")
        return found

    def awaited(self: PendingGroup) -> None:
        free.set()
        wait(self)

    monkeypatch.setattr(SegmentReader, "group", noted)
    monkeypatch.setattr(PendingGroup, "wait", awaited)
    archive.read(0, "0-0", 500)
    assert sum(map(len, archive.ids(0))) == 3_000
    archive.close()
    assert order == ["page", "ahead", "ids", "ids", "ids"]


class Overtaken(LocalObjects):
    """A directory in which an archiver publishes three times before a manifest is fetched."""

    done = False

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes; None for a manifest that is not among the newest any more."""
        if "manifest" in name and not self.done:
            self.done = True
            rows, writer = entries(100), archive_in(Path(self.where))
            for start in (40, 60, 80):
                writer.publish(0, rows[start : start + 20])
        return super().get(name)


def test_a_manifest_that_is_overtaken_is_no_damage(tmp_path):
    """G7: a manifest deleted between a reader's list and its fetch: the newer one is read."""
    sealed(tmp_path, 2, SIZE)
    reader = Archive(Overtaken(tmp_path), "t", LOG)
    assert [one.position.n for one in reader.scan(0)] == list(range(1, 101))


AHEAD = "memorybus-ahead"
LARGE, PAGE = 2_500, 500
"""Rows of a segment, three groups of them; and rows of a page, enough to be read ahead for."""


@pytest.fixture(name="readers")
def _readers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads that read groups, in order."""
    names: list[str] = []
    group = SegmentReader.group

    def noted(self: SegmentReader, index: int, columns: Sequence[str] = ()) -> Group:
        names.append(threading.current_thread().name)
        return group(self, index, columns)

    monkeypatch.setattr(SegmentReader, "group", noted)
    return names


def next_page(archive: Archive, found: list[LoggedEvent]) -> list[LoggedEvent]:
    """Read on behind what was found."""
    return archive.read(0, found[-1].position.entry if found else "0-0", PAGE)


def no_group() -> Group:
    """Be read ahead, and find nothing."""
    raise ArchiveDamaged("no group")


def done(aside: ReadAheadThread, read: Callable[[], Group]) -> PendingGroup:
    """Have something read."""
    one = aside.begin(PendingGroup(("segment", 0, ()), read))
    one.wait()
    return one


def test_all_but_the_first_group_is_read_ahead(tmp_path, readers):
    """G7: the next segment is checked, opened and begun while the rows before it are applied."""
    known = sealed(tmp_path, 3, LARGE)
    readers.clear()
    assert list(pages(archive_in(tmp_path), page=PAGE)) == known
    assert [name == AHEAD for name in readers] == [False, *[True] * 8]


def test_a_damaged_next_segment_is_named_behind_the_rows_before_it(tmp_path):
    """G7: what goes wrong ahead costs no row before it, and is told whenever it is come to."""
    known = sealed(tmp_path, 3, LARGE)
    file = sorted((tmp_path / "p00").rglob("*.parquet"))[1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    archive, found = archive_in(tmp_path), list[LoggedEvent]()
    while len(found) < LARGE:
        found += next_page(archive, found)
    for _ in range(2):
        with pytest.raises(ArchiveDamaged, match=file.name):
            next_page(archive, found)
    file.write_bytes(whole)
    assert [*found, *next_page(archive, found)] == known[: LARGE + PAGE]


def test_what_was_opened_ahead_is_closed(tmp_path, monkeypatch):
    """A reader that stops leaves no file open."""
    sealed(tmp_path, 3, LARGE)
    files: list[SegmentReader] = []
    begin = SegmentReader.__init__

    def noted(self: SegmentReader, *words: object) -> None:
        begin(self, *words)
        files.append(self)

    monkeypatch.setattr(SegmentReader, "__init__", noted)
    archive, found = archive_in(tmp_path), list[LoggedEvent]()
    while len(found) < LARGE:
        found += next_page(archive, found)
    archive.close()  # the second one is open, and nothing was read of it
    assert len(files) == 2
    assert all(one._file.closed for one in files)


def threads_of_four(aside: ReadAheadThread) -> set[threading.Thread]:
    """Return the threads that read four things, the first of which lets them all be asked for."""
    go, threads = threading.Event(), set[threading.Thread]()

    def noted() -> Group:
        assert go.wait(10)
        threads.add(threading.current_thread())
        return no_group()

    begun = [aside.begin(PendingGroup(("segment", n, ()), noted)) for n in range(4)]
    go.set()
    for one in begun:
        with pytest.raises(ArchiveDamaged, match="no group"):
            one.result()
    return threads


def test_the_thread_is_one_and_ends(monkeypatch):
    """One thread reads all, ends when there is nothing more, and comes back when there is."""
    monkeypatch.setattr(partition, "IDLE_SECONDS", 0.01)
    aside = ReadAheadThread()
    (first,) = threads_of_four(aside)
    wait_until(lambda: not first.is_alive(), "the thread has ended")
    (second,) = threads_of_four(aside)
    assert second is not first


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_ahead(monkeypatch):
    """The thread is not there in a child: it begins one of its own."""
    monkeypatch.setattr(partition, "IDLE_SECONDS", 60.0)
    aside = ReadAheadThread()
    done(aside, no_group)
    in_child(lambda: done(aside, no_group).wait())
