"""Readers of the archive while an archiver writes it anew beside them: every row, once (G7)."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.archive.archives import LOG, archive_in, entries, sealed
from memorybus.archive.archive import Archive
from memorybus.archive.format.reader import Group, SegmentReader
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.partition import PendingGroup
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
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
