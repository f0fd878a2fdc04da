"""A damaged spool that does not fit, and full disks: nothing is lost, and nobody else suffers."""

import logging
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.disks import MIB, Disk
from helpers.stories.spools import abandoned, damage, files_of, numbers_in, numbers_logged, put
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import SpoolFull
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import drain_orphans
from memorybus.outbox.spool import Spool

NOWHERE = "redis://127.0.0.1:1/0"
SMALL = 20_000

MakeDisk = Callable[[Path, int], Disk]


@pytest.fixture(name="settings")
def _settings(make_settings: MakeSettings) -> Settings:
    return make_settings(compress_min_bytes=1 << 30)


@pytest.fixture(name="away")
def _away(make_settings: MakeSettings) -> Settings:
    return make_settings(url=NOWHERE)


def damaged(settings: Settings, count: int = 100, size: int = 1_000) -> Path:
    """Leave a damaged spool."""
    path = abandoned(settings, count, size)
    damage(path)
    return path


def bounded(settings: Settings) -> Settings:
    """Return the same settings with a bound that is smaller than what `damaged` leaves."""
    return msgspec.structs.replace(settings, spool_max_bytes=SMALL)


def spools(settings: Settings) -> set[str]:
    """Return the names of the spool files."""
    return {path.name for path in settings.spool_dir.glob("*.db")}


def without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full whenever rows are saved."""

    def full(spool: Spool, rows: object) -> None:
        raise SpoolFull("the disk is full")

    monkeypatch.setattr(Spool, "save", full)


def test_what_is_saved_may_be_above_the_bound(away):
    """G1, G10: rows of a damaged spool were accepted: they are saved, and nobody is held up."""
    path = damaged(away)
    files = files_of(bounded(away))
    spool = next(files.adopt_all())
    assert path.with_suffix(".corrupt").exists()
    assert len(numbers_in(spool)) > 50
    assert spool.size > SMALL
    with pytest.raises(SpoolFull, match="spool_max_bytes"):
        put(spool, 1_000)
    spool.close()
    ours = files.claim()
    assert put(ours, 1_000), "who starts goes on with one that has room"
    ours.close()


def test_saving_holds_one_row_at_a_time(make_settings):
    """G9, G10: what saving a damaged spool takes of an agent's memory does not grow with it."""
    away = make_settings(url=NOWHERE, spool_reserve=0)
    path = damaged(away, 1_500, 16_000)
    size = path.stat().st_size
    tracemalloc.start()
    try:
        spool = next(files_of(away).adopt_all())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    saved = numbers_in(spool)
    spool.close()
    assert len(saved) > 1_400
    assert saved == sorted(saved), "in order, also behind the damage"
    assert saved[0] == 0
    assert saved[-1] == 1_499
    assert peak < size / 10


def test_a_damaged_neighbour_holds_up_nobody(redis_client, settings):
    """G1, G9: an agent meets a large damaged spool: what is in it goes out, and its own events."""
    path = damaged(settings)
    with MemoryBus.connect(bounded(settings)) as bus:
        bus.session("s", warm=False).turn_completed("a", "b")
        assert bus.flush("logged", 25), bus.problem
    assert path.with_suffix(".corrupt").exists()
    assert not spools(settings) & {path.name}


def test_what_cannot_be_saved_is_left_alone(away, monkeypatch, caplog):
    """G9, G10: without room a damaged spool stays, told once; no try leaves anything behind."""
    path = damaged(away)
    files = files_of(away)
    without_room(monkeypatch)
    before = sorted(away.spool_dir.iterdir())
    for _ in range(3):
        assert list(files.adopt_all()) == []
        assert sorted(away.spool_dir.iterdir()) == before
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert path.name in caplog.text
    monkeypatch.undo()
    spool = next(files.adopt_all())
    assert len(numbers_in(spool)) > 50, "with room it is saved"
    spool.close()


def test_others_go_on_beside_what_cannot_be_saved(redis_client, settings, monkeypatch):
    """G1, G9: a damaged spool that waits for room keeps neither other spools nor a start."""
    path = damaged(settings)
    files = files_of(settings)
    without_room(monkeypatch)
    spool = files.claim()
    put(spool, 7)
    spool.close()
    assert drain_orphans(files, redis_client, SendingContext(settings)) == 1
    assert numbers_logged(redis_client, settings) == [7]
    assert path.exists()


def test_an_agent_goes_on_over_damage_without_room(away, monkeypatch):
    """G1, G9: whose own damaged spool cannot be saved now goes on with an empty one."""
    files = files_of(away)
    spool = files.claim()
    put(spool, 0)
    without_room(monkeypatch)
    fresh = files.replace(spool, "damaged")
    put(fresh, 1)
    assert numbers_in(fresh) == [1]
    again = files.replace(fresh, "damaged")
    assert files.set_aside(fresh, "told again by another thread") is None
    assert len(spools(away)) == 3
    for opened in (*files.adopt_all(), again):
        opened.close()


def test_a_disk_without_room_is_not_filled(make_settings, make_disk):
    """G10: saving begins only where it fits; the room that is left is for draining."""
    settings = make_settings(url=NOWHERE, spool_reserve=0)
    settings.spool_dir.parent.mkdir(parents=True, exist_ok=True)
    disk = make_disk(settings.spool_dir, 64 * MIB)
    path = damaged(settings, 1_000, 4_000)
    (disk.path / "other").write_bytes(b"x" * (disk.free() - 5 * MIB))
    free = disk.free()
    files = files_of(settings)
    assert list(files.adopt_all()) == []
    assert disk.free() == free
    disk.grow(128 * MIB)
    spool = next(files.adopt_all())
    assert len(numbers_in(spool)) > 900
    assert path.with_suffix(".corrupt").exists()
    spool.close()


def test_a_note_that_cannot_be_written_stops_nobody(away):
    """G1, G9: the note is for those who look; without room for it a spool opens and works."""
    path = abandoned(away, 3)
    note = path.with_suffix(".unsent")
    note.unlink()
    note.mkdir()
    spool = files_of(away).claim()
    put(spool, 3)
    spool.note_unsent(0)
    assert numbers_in(spool) == [0, 1, 2, 3]
    spool.close()
