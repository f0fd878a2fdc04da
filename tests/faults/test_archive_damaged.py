"""Damage to the archive's files: each is named, none is applied, the rest is readable (G7)."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.archive.archives import LOG, archive_in, as_logged, entries, pages, sealed
from helpers.faults.scale import chances, rounds, times
from memorybus.archive.archive import Archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.archive.tombstones import DamageHandler
from memorybus.errors import ArchiveDamaged
from memorybus.events import Omission, Omitted
from memorybus.log.entry import LoggedEvent
from memorybus.query.query import EventRow
from memorybus.testing import CrashPoints

pytestmark = pytest.mark.fault

SIZE = 20
SEGMENTS = 5
VICTIM = 2
"""The segment that is damaged, from 0."""

POINTS = ("archive.written", "archive.verified", "archive.published")


def segment_files(directory: Path, partition: int = 0) -> list[Path]:
    """Return the segments in order."""
    return sorted((directory / f"p{partition:02d}" / "segments").iterdir())


def damaged(directory: Path) -> list[str]:
    """Return what `verify` names."""
    return [one.file for one in archive_in(directory).verify([0]) if one.found == "damaged"]


def check_named(directory: Path, known: list[LoggedEvent], file: Path) -> None:
    """Make sure that one segment is named, not read, and that the others are."""
    start, stop = VICTIM * SIZE, (VICTIM + 1) * SIZE
    assert damaged(directory) == [f"segments/{file.name}"]
    archive = archive_in(directory)
    assert archive.read(0, count=start) == known[:start]
    with pytest.raises(ArchiveDamaged, match=file.name):
        archive.read(0, known[start - 1].position.entry)
    assert archive.read(0, known[stop - 1].position.entry, 1_000) == known[stop:]
    told: list[str] = []
    assert list(archive.scan(0, damage=DamageHandler(told))) == known[:start] + known[stop:]
    assert len(told) == 1
    assert file.name in told[0]


def flipped(data: bytes, place: int, bit: int) -> bytes:
    """Return bytes with one bit turned."""
    wrong = bytearray(data)
    wrong[place] ^= 1 << bit
    return bytes(wrong)


def test_a_flipped_bit_of_a_segment_is_named(tmp_path, report):
    """G7: one wrong bit anywhere in a segment: it is named, and nothing of it is applied."""
    known, rng = sealed(tmp_path, SEGMENTS, SIZE), chances("segment")
    file = segment_files(tmp_path)[VICTIM]
    good = file.read_bytes()
    for number in range(times(200, quick=5)):
        report(faults=number + 1, events=len(known))
        file.write_bytes(flipped(good, rng.randrange(len(good)), rng.randrange(8)))
        check_named(tmp_path, known, file)
    file.write_bytes(good)
    assert list(pages(archive_in(tmp_path))) == known


def test_a_flipped_bit_of_a_manifest_is_named(tmp_path, report):
    """G7: one wrong bit anywhere in a manifest: it is named, and nothing behind it is read."""
    known, rng = sealed(tmp_path, SEGMENTS, SIZE), chances("manifest")
    file = max((tmp_path / "p00").glob("manifest-*"))
    good = file.read_bytes()
    for number in range(times(300, quick=5)):
        report(faults=number + 1, events=len(known))
        file.write_bytes(flipped(good, rng.randrange(len(good)), rng.randrange(8)))
        assert damaged(tmp_path) == [file.name] * len(damaged(tmp_path)) != []
        told: list[str] = []
        found = list(archive_in(tmp_path).scan(0, damage=DamageHandler(told)))
        assert found == known[: len(found)]
    file.write_bytes(good)
    assert list(pages(archive_in(tmp_path))) == known


def removed(files: list[Path]) -> None:
    """Take the segment away."""
    files[VICTIM].unlink()


def truncated(files: list[Path]) -> None:
    """Cut the segment off."""
    data = files[VICTIM].read_bytes()
    files[VICTIM].write_bytes(data[: len(data) // 2])


def emptied(files: list[Path]) -> None:
    """Leave nothing in the segment."""
    files[VICTIM].write_bytes(b"")


def replaced(files: list[Path]) -> None:
    """Put a copy of its neighbour there."""
    shutil.copy(files[VICTIM + 1], files[VICTIM])


def lengthened(files: list[Path]) -> None:
    """Add bytes."""
    files[VICTIM].write_bytes(files[VICTIM].read_bytes() + b"\0")


def made_a_folder(files: list[Path]) -> None:
    """Let a folder have its name."""
    files[VICTIM].unlink()
    files[VICTIM].mkdir()


def made_a_pipe(files: list[Path]) -> None:
    """Let a pipe have its name, which nobody ever writes to."""
    files[VICTIM].unlink()
    os.mkfifo(files[VICTIM])


def on_a_bad_sector(files: list[Path]) -> None:
    """Let every read of the file fail with EIO."""
    files[VICTIM].unlink()
    files[VICTIM].symlink_to("/proc/self/mem")


DAMAGE = (removed, truncated, emptied, replaced, lengthened)
NO_FILE = (made_a_folder, made_a_pipe, on_a_bad_sector)


@pytest.mark.parametrize("damage", [*DAMAGE, *NO_FILE])
def test_a_damaged_segment_is_named(tmp_path, damage):
    """G7: a segment that is removed, changed or not readable is named; the others are read."""
    known = sealed(tmp_path, SEGMENTS, SIZE)
    files = segment_files(tmp_path)
    damage(files)
    check_named(tmp_path, known, files[VICTIM])


def test_segments_that_changed_places_are_named(tmp_path):
    """G7: two segments swapped, in one partition or between two: both are named."""
    sealed(tmp_path, SEGMENTS, SIZE)
    sealed(tmp_path, SEGMENTS, SIZE + 1, partition=1)
    here, there = segment_files(tmp_path), segment_files(tmp_path, 1)
    for one, other in ((here[1], here[3]), (here[0], there[0])):
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
    found = [one for one in archive_in(tmp_path).verify([0, 1]) if one.found == "damaged"]
    names = [(one.partition, one.file.rpartition("/")[2]) for one in found]
    assert names == [(0, here[0].name), (0, here[1].name), (0, here[3].name), (1, there[0].name)]
    assert "holds a segment of partition 1" in found[0].why
    assert "holds the events 61 to 80, not 21 to 40" in found[1].why


def test_a_copy_of_a_segment_is_not_read_twice(tmp_path):
    """G7: a file that no manifest names is told and never read."""
    known = sealed(tmp_path, SEGMENTS, SIZE)
    file = segment_files(tmp_path)[VICTIM]
    shutil.copy(file, file.with_name("copy.parquet"))
    found = [one for one in archive_in(tmp_path).verify([0]) if one.found != "sound"]
    assert [(one.found, one.file) for one in found] == [("unlisted", "segments/copy.parquet")]
    assert list(pages(archive_in(tmp_path))) == known


def test_a_manifest_cut_off_is_not_the_end_of_history(tmp_path):
    """G7: a manifest that lost its end is no short history: readers stop there, writers refuse."""
    known = sealed(tmp_path, SEGMENTS, SIZE)
    file = max((tmp_path / "p00").glob("manifest-*"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]))
    archive = archive_in(tmp_path)
    assert archive.read(0, count=3 * SIZE) == known[: 3 * SIZE]
    with pytest.raises(ArchiveDamaged, match="cut off"):
        archive.read(0, known[3 * SIZE - 1].position.entry)
    with pytest.raises(ArchiveDamaged, match="cut off"):
        archive.publish(0, entries(10, first=SEGMENTS * SIZE + 1))


def die(directory: Path, point: str, work: Callable[[Archive], object]) -> None:
    """Do something in a child process that is killed at a point."""
    child = os.fork()
    if child == 0:
        try:
            work(Archive(LocalObjects(directory), "t", LOG, crash=CrashPoints(point)))
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("turn", rounds(5))
def test_a_seal_that_was_killed_is_resumed(tmp_path, point, turn):
    """G7: killed at any point of a seal: what is named is whole, and no row is there twice."""
    rows = entries(60 + turn)
    archive_in(tmp_path).publish(0, rows[:20])
    die(tmp_path, point, lambda archive: archive.publish(0, rows[:60]))
    assert list(pages(archive_in(tmp_path))) == as_logged(
        rows[: 60 if "published" in point else 20]
    )
    archive_in(tmp_path).publish(0, rows)
    archive = archive_in(tmp_path)
    assert list(pages(archive)) == as_logged(rows)
    assert not [one for one in archive.verify([0]) if one.found == "damaged"]


def light(row: EventRow, _: int) -> Omission | None:
    """Keep nothing of one person."""
    return "retention" if row.user == "u-2" else None


def shape(events: list[LoggedEvent]) -> list[tuple[int, bool]]:
    """Return the numbers of some events, and which of them are left out."""
    return [(e.position.n, isinstance(e.envelope.event, Omitted)) for e in events]


@pytest.mark.parametrize("point", POINTS)
def test_a_compaction_that_was_killed_is_done_again(tmp_path, point):
    """G7: killed at any point of it: every row is there once, as before or as after; then after."""
    known = sealed(tmp_path, 4)
    reader = archive_in(tmp_path)
    assert reader.read(0, count=10) == known[:10]
    die(tmp_path, point, lambda archive: archive.replace(0, archive.segments(0)[1:3], light))
    after = [(e.position.n, 20 < e.position.n <= 60 and _of(e) == "u-2") for e in known]
    done = "published" in point
    assert shape(list(pages(archive_in(tmp_path)))) == (after if done else shape(known))
    assert [one.position for one in pages(reader)] == [one.position for one in known]
    again = archive_in(tmp_path)
    if not done:
        again.replace(0, again.segments(0)[1:3], light)
    assert shape(list(pages(again))) == after
    assert not [one for one in again.verify([0]) if one.found == "damaged"]
    again.publish(0, entries(100))
    assert [one.position.n for one in pages(again)] == list(range(1, 101))


def _of(event: LoggedEvent) -> str:
    return event.envelope.scope.user
