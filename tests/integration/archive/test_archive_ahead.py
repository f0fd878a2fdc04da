"""Reading ahead: another thread opens and unpacks, the reader gets the same rows and errors."""

import threading
from collections.abc import Callable, Sequence

import pytest
from helpers.archive.archives import archive_in, pages, sealed
from helpers.processes.forked import in_child
from helpers.processes.waiting import wait_until
from memorybus.archive import partition
from memorybus.archive.archive import Archive
from memorybus.archive.format.reader import Group, SegmentReader
from memorybus.archive.partition import PendingGroup, ReadAheadThread
from memorybus.errors import ArchiveDamaged
from memorybus.log.entry import LoggedEvent

AHEAD = "memorybus-ahead"
SIZE, PAGE = 2_500, 500
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
    known = sealed(tmp_path, 3, SIZE)
    readers.clear()
    assert list(pages(archive_in(tmp_path), page=PAGE)) == known
    assert [name == AHEAD for name in readers] == [False, *[True] * 8]


def test_a_damaged_next_segment_is_named_behind_the_rows_before_it(tmp_path):
    """G7: what goes wrong ahead costs no row before it, and is told whenever it is come to."""
    known = sealed(tmp_path, 3, SIZE)
    file = sorted((tmp_path / "p00").rglob("*.parquet"))[1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    archive, found = archive_in(tmp_path), list[LoggedEvent]()
    while len(found) < SIZE:
        found += next_page(archive, found)
    for _ in range(2):
        with pytest.raises(ArchiveDamaged, match=file.name):
            next_page(archive, found)
    file.write_bytes(whole)
    assert [*found, *next_page(archive, found)] == known[: SIZE + PAGE]


def test_what_was_opened_ahead_is_closed(tmp_path, monkeypatch):
    """A reader that stops leaves no file open."""
    sealed(tmp_path, 3, SIZE)
    files: list[SegmentReader] = []
    begin = SegmentReader.__init__

    def noted(self: SegmentReader, *words: object) -> None:
        begin(self, *words)
        files.append(self)

    monkeypatch.setattr(SegmentReader, "__init__", noted)
    archive, found = archive_in(tmp_path), list[LoggedEvent]()
    while len(found) < SIZE:
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
