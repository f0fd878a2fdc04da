"""What is deleted from the archive, and when: nothing that anybody may still need (G7, G10)."""

import os
from pathlib import Path

import pytest
from helpers.archive.archives import LOG, archive_in, entries, entry, pages, sealed
from memorybus.archive.archive import Archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.objects.store import Objects
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM
from memorybus.errors import ArchiveUnavailable
from memorybus.events import Omission
from memorybus.query.query import EventRow, Query
from memorybus.testing import FakeClock

HOUR = 3_600.0


def by(clock: FakeClock, directory: Path) -> Archive:
    """Return the archive as a process with this clock sees it."""
    return Archive(LocalObjects(directory), "t", LOG, clock=clock)


@pytest.fixture(name="clock")
def _clock() -> FakeClock:
    """Return a clock that begins at the time that files get."""
    return FakeClock(SYSTEM.now_ms())


def names(directory: Path) -> list[str]:
    """Return the names of the segments' files."""
    return sorted(one.name for one in (directory / "p00" / "segments").iterdir())


def forgotten(row: EventRow, _: int) -> Omission | None:
    """Forget everything of one person."""
    return "forgotten" if row.user == "u-2" else None


def test_files_that_nobody_names_go_after_an_hour(tmp_path, clock):
    """G10: compacted segments and cut short seals do not stay for ever, but for long enough."""
    known = sealed(tmp_path, 4)
    (tmp_path / "p00" / "segments" / "orphan.parquet").write_bytes(b"x")
    archive = by(clock, tmp_path)
    archive.replace(0, archive.segments(0))
    for n in (81, 82, 83):
        archive.publish(0, [entry(n)])
    assert archive.clean(0) == 0
    clock.advance(HOUR + 60)
    assert archive.clean(0) == 5
    assert list(pages(archive_in(tmp_path)))[:80] == known
    assert len(list((tmp_path / "p00").glob("manifest-*"))) == 3


def test_an_old_file_stays_for_readers_an_hour_after_it_was_replaced(tmp_path, clock):
    """G7: that counts, not when the file was made: a reader may have the manifest before."""
    known = sealed(tmp_path, 4)
    clock.advance(24 * HOUR)
    archive = by(clock, tmp_path)
    reading = by(clock, tmp_path).scan(0)
    found = [next(reading)]
    archive.replace(0, archive.segments(0))
    for n in (81, 82, 83):
        archive.publish(0, [entry(n)])
    assert archive.clean(0) == 0
    assert [*found, *reading][:80] == known
    clock.advance(HOUR + 60)
    assert archive.clean(0) == 4


def test_what_is_forgotten_leaves_a_quiet_partition(tmp_path, clock):
    """G10: the file before goes after an hour, also where nothing more is ever sealed."""
    sealed(tmp_path, 1)
    archive = by(clock, tmp_path)
    (old,) = names(tmp_path)
    archive.replace(0, archive.segments(0), forgotten)
    clock.advance(HOUR / 2)
    assert archive.clean(0) == 0
    clock.advance(HOUR)
    assert archive.clean(0) == 1
    assert len(names(tmp_path)) == 1
    assert old not in names(tmp_path)
    manifests = sorted((tmp_path / "p00").glob("manifest-*"))
    assert len(manifests) == 3
    assert archive.clean(0) == 0
    manifests[-1].unlink()  # the others say the same
    assert not [one for one in archive_in(tmp_path).verify([0]) if one.found == "damaged"]


def test_nothing_goes_while_a_segment_is_missing(tmp_path, clock):
    """G7: where the newest manifest was lost, the file that has its rows is not taken for idle."""
    known = sealed(tmp_path, 4)
    archive = by(clock, tmp_path)
    replaced = archive.segments(0)
    archive.replace(0, replaced)
    lost = max((tmp_path / "p00").glob("manifest-*"))
    data = lost.read_bytes()
    lost.unlink()
    for one in replaced:
        (tmp_path / "p00" / one.file).unlink()
    clock.advance(2 * HOUR)
    assert by(clock, tmp_path).clean(0) == 0
    lost.write_bytes(data)
    assert list(pages(archive_in(tmp_path))) == known


def test_what_may_mend_a_damaged_segment_stays(tmp_path, clock):
    """G7, G10: replaced files go, but those with rows of a segment that cannot be read."""
    sealed(tmp_path, 4)
    archive = by(clock, tmp_path)
    segments = archive.segments(0)
    joined = archive.replace(0, segments[:2])
    archive.replace(0, segments[2:], forgotten)
    clock.advance(HOUR + 60)
    assert archive.clean(0, {joined.sha256}) == 2
    assert {one.file.rpartition("/")[2] for one in segments[:2]} < set(names(tmp_path))
    assert len(names(tmp_path)) == 4
    assert archive.clean(0) == 2


def killed_while_writing(objects: Objects, name: str) -> None:
    """Leave what a writer leaves that dies before its file has its name."""
    assert isinstance(objects, LocalObjects)
    path = Path(objects.where) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")


def test_what_killed_writers_left_goes(tmp_path, clock):
    """G10: files that never got their name, wherever in the archive they lie, go after an hour."""
    archive = by(clock, tmp_path)
    archive.publish(0, entries(20))
    archive.forget(Tombstone(id="t", query=Query(users=("nobody",))))
    left = ("p00/.new-a", "p00/segments/.new-b", "tombstones/.new-c")
    for name in left:
        killed_while_writing(archive.objects, name)
    assert archive.clean(0) == 0
    assert {one.found for one in archive.verify([0])} == {"sound"}
    clock.advance(HOUR + 60)
    assert archive.clean(0) == 3
    assert not list(tmp_path.rglob(".new-*"))
    assert len(list(pages(archive_in(tmp_path)))) == 20
    assert len(archive.tombstones()) == 1


def test_a_writer_that_sleeps_for_an_hour_names_nothing(tmp_path, clock, monkeypatch):
    """G5: who is taken for dead and is not is told so, has named nothing, and may try again."""
    archive = by(clock, tmp_path)
    archive.publish(0, entries(20))
    link = os.link

    def late(fresh: Path, path: Path) -> None:
        clock.advance(HOUR + 60)
        assert by(clock, tmp_path).clean(0) == 1
        link(fresh, path)

    rows = entries(40)
    monkeypatch.setattr(os, "link", late)
    with pytest.raises(ArchiveUnavailable, match="No such file"):
        archive.publish(0, rows)
    monkeypatch.undo()
    assert len(list(pages(archive_in(tmp_path)))) == 20
    archive.publish(0, rows)
    assert len(list(pages(archive_in(tmp_path)))) == 40
