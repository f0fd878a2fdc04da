"""The spool on a real disk: bounds, damage, owners."""

import os
import random
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import TESTS, agent, numbers
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import EventTooLarge, SpoolCorrupt, SpoolFull
from memorybus.events import TurnCompleted
from memorybus.health.monitor import spool_status
from memorybus.ids import new_id
from memorybus.outbox.database import ROW_OVERHEAD
from memorybus.outbox.files import SpoolFiles, inspect_spool
from memorybus.outbox.spool import Spool
from memorybus.wire.codec import Decoder

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> SpoolFiles:
    return files_in(tmp_path / "spool")


def files_in(directory: Path, max_bytes: int = 1 << 30, disk_reserve: int = 0) -> SpoolFiles:
    return SpoolFiles(
        directory, new_id, clock=SYSTEM, max_bytes=max_bytes, disk_reserve=disk_reserve
    )


def put(spool: Spool, number: int, size: int = 100, partition: int = 0) -> int:
    """Append an event whose id is its number."""
    return spool.append(partition, number.to_bytes(16, "big"), b"d" * 8, b"x" * size)


def event_numbers(spool: Spool) -> list[int]:
    """Return the numbers of the events in a spool, in order."""
    return [int.from_bytes(row[2], "big") for row in spool.rows_after(0, 1_000_000, 1 << 40)]


def until_full(publish: Callable[[], object]) -> int:
    """Publish until the spool is full; return how many it took."""
    for taken in range(100_000):
        try:
            publish()
        except SpoolFull:
            return taken
    raise AssertionError("the spool is never full")


def wait_unsent(settings: Settings, count: int) -> None:
    """Wait until the status shows so many events unsent."""
    wait_until(lambda: spool_status(settings).events == count, f"{count} events are unsent")


@pytest.fixture(name="away")
def _away(make_settings: MakeSettings) -> Settings:
    """Return settings of a host whose Redis is away."""
    return make_settings(url=NOWHERE)


# -- order and bounds -----------------------------------------------------------------------------


def test_rows_come_back_in_order(files):
    """G3: rows are read in the order they were accepted, by partition too, bounded in bytes."""
    spool = files.claim()
    sequences = [put(spool, number, partition=number % 3) for number in range(30)]
    assert sequences == sorted(set(sequences))
    assert event_numbers(spool) == list(range(30))
    ones = spool.rows_after(0, 5, 1 << 20, 1)
    assert [int.from_bytes(row[2], "big") for row in ones] == [1, 4, 7, 10, 13]
    assert len(spool.rows_after(0, 30, 1)) == 1, "at least one row, however large"
    spool.close()


def test_a_full_spool_refuses(tmp_path):
    """G10: at its bound a spool refuses the event by name of the setting, and room comes back."""
    spool = files_in(tmp_path / "s", max_bytes=10 * (100 + ROW_OVERHEAD)).claim()
    accepted = [put(spool, number) for number in range(10)]
    with pytest.raises(SpoolFull, match="spool_max_bytes"):
        put(spool, 10)
    assert event_numbers(spool) == list(range(10))
    spool.delete_upto(accepted[0])
    put(spool, 11)
    with pytest.raises(SpoolFull):
        put(spool, 12)
    spool.close()


def test_the_log_of_a_busy_spool_stays_small(files):
    """G10: what a spool takes on the disk is bounded also while it is never idle."""
    spool = files.claim()
    appending = threading.Thread(target=lambda: [put(spool, n, 4_000) for n in range(10_000)])
    appending.start()
    log = spool.path.with_suffix(".db-wal")
    largest = 0
    while appending.is_alive():
        spool.delete_upto(spool.last)
        spool.tidy()
        largest = max(largest, log.stat().st_size)
    spool.close()
    assert largest < 3 * (4_096 * 8_192), "three times the size at which it is begun anew"


def test_a_full_spool_does_not_stop_the_agents_session(make_settings):
    """G1, G10: with Redis away and the bound reached, `publish` raises and what it took is kept."""
    settings = make_settings(url=NOWHERE, spool_max_bytes=20_000)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        taken = until_full(lambda: session.turn_completed("x" * 1_000, "ok"))
        assert session.prefetch() == ""
        wait_unsent(settings, taken + 1)
    assert 10 < taken < 20


def test_an_oversized_event_is_refused_and_not_spooled(make_settings):
    """G10: an event over the limit raises with its size; nothing of it is kept, others go on."""
    settings = make_settings(url=NOWHERE, event_max_bytes=2_000)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        with pytest.raises(EventTooLarge, match=r"event_max_bytes. is 2000"):
            session.turn_completed("x" * 2_000, "ok")
        session.turn_completed("fits", "ok")
        wait_unsent(settings, 2)


def test_sizes_are_counted_again_after_reopening(tmp_path):
    """G10: the bound holds over owners of the file: the next one counts what is there."""
    files = files_in(tmp_path / "s", max_bytes=10 * (100 + ROW_OVERHEAD))
    first = files.claim()
    for number in range(10):
        put(first, number)
    size = first.size
    first.close()
    second = files.claim()
    assert second.size == size
    with pytest.raises(SpoolFull):
        put(second, 11)
    second.close()


# -- sequences ------------------------------------------------------------------------------------


def test_a_sequence_is_never_used_again(files):
    """G2: after deleting and reopening, sequences go on above all that were ever given."""
    spool = files.claim()
    used = [put(spool, number) for number in range(5)]
    spool.delete_upto(used[-1])
    assert spool.deleted_sequences() == {0: used[-1]}
    spool.close()
    again = files.claim()
    assert again.producer == spool.producer
    assert put(again, 6) > used[-1]
    again.close()


def test_a_truncated_spool_uses_no_sequence_again(tmp_path):
    """G1: a file cut to nothing is a new producer, or begins above all it may have given before."""
    files = files_in(tmp_path / "s")
    spool = files.claim()
    used = [put(spool, number) for number in range(5)]
    spool.close()
    spool.path.write_bytes(b"")
    again = files.claim()
    assert again.producer != spool.producer or put(again, 9) > used[-1]
    again.close()


# -- owners ---------------------------------------------------------------------------------------


def test_two_owners_never_share_a_spool(files):
    """G2: a spool whose owner lives is nobody else's, in this process or another."""
    first, second = files.claim(), files.claim()
    assert first.path != second.path
    assert next(files.adopt_all(), None) is None
    first.close()
    adopted = next(files.adopt_all(), None)
    assert adopted is not None
    assert adopted.path == first.path
    for spool in (second, adopted):
        spool.close()


def test_processes_never_share_a_spool(away, spawn):
    """G2: two living agents of one host have two spools; a third takes over a dead one's."""
    agents = [agent(spawn, away, "--session", n, "--count", 3, "--hold") for n in ("a", "b")]
    for child in agents:
        child.wait_output("holding")
    assert len(list(away.spool_dir.glob("*.db"))) == 2
    agents[0].kill()
    with MemoryBus.connect(away) as bus:
        assert len(list(away.spool_dir.glob("*.db"))) == 2, "the dead agent's is gone on with"
        assert bus.last_sequence >= 4
        bus.session("c", warm=False)
        wait_unsent(away, 9)


def test_adoption_survives_a_killed_owner(away, spawn):
    """G1: every event for which `publish` returned is in the spool after SIGKILL."""
    child = agent(spawn, away, "--count", 200, "--hold")
    child.wait_output("holding")
    child.kill()
    accepted = numbers(child.output())
    spool = files_in(away.spool_dir).claim()
    events = [Decoder().decode(row[4]).event for row in spool.rows_after(0, 1_000, 1 << 30)]
    found = [event.ordinal for event in events if isinstance(event, TurnCompleted)]
    assert found == accepted == list(range(200))
    spool.close()


def test_an_adopted_and_emptied_spool_leaves_no_file(files):
    """G10: a discarded spool leaves nothing behind in its directory."""
    spool = files.claim()
    spool.discard()
    assert list(files.directory.iterdir()) == []


def test_one_bad_spool_does_not_stop_the_others(files):
    """G9: a spool that cannot be opened at all keeps nobody from working."""
    files.directory.mkdir(parents=True)
    (files.directory / "00000000000000000000000000000000.db").mkdir()
    spool = files.claim()
    put(spool, 1)
    assert event_numbers(spool) == [1]
    spool.close()


# -- damage ---------------------------------------------------------------------------------------


def filled(files: SpoolFiles, count: int = 400) -> tuple[Path, str]:
    """Leave a spool of an owner that is gone, everything in one file."""
    spool = files.claim()
    for number in range(count):
        put(spool, number)
    spool.close()
    db = sqlite3.connect(spool.path)
    db.execute("pragma wal_checkpoint(truncate)").fetchall()
    db.close()
    return spool.path, spool.producer


def garbage_header(path: Path) -> None:
    """Overwrite the first page."""
    with path.open("r+b") as file:
        file.write(b"this was a spool once " * 50)


def damaged_middle(path: Path) -> None:
    """Overwrite one page in the middle."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(random.Random(1).randbytes(4096))


def truncated(path: Path) -> None:
    """Cut the second half off."""
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096 + 100)


DAMAGES = [(garbage_header, 0), (damaged_middle, 200), (truncated, 50)]


@pytest.mark.parametrize(("damage", "least"), DAMAGES, ids=lambda p: getattr(p, "__name__", ""))
def test_a_damaged_spool_is_set_aside(files, damage, least, caplog):
    """G1: a damaged spool is kept aside and named; what can be read of it goes on, in order."""
    path, producer = filled(files)
    damage(path)
    spool = files.claim()
    assert spool.producer != producer
    assert path.with_suffix(".corrupt").exists()
    assert not path.exists()
    saved = event_numbers(spool)
    assert saved == sorted(set(saved))
    assert len(saved) >= least
    assert set(saved) <= set(range(400))
    assert path.name in caplog.text
    assert f"{len(saved)} events read from it will be sent" in caplog.text
    put(spool, 1_000)
    spool.close()


def test_publishing_goes_on_over_damage(away):
    """G1, G9: damage found while publishing costs no accepted event and no exception."""
    with MemoryBus.connect(away) as bus:
        session = bus.session("s", warm=False)
        for number in range(50):
            session.turn_completed("x" * 2_000, "ok", ordinal=number)
        path = next(away.spool_dir.glob("*.db"))
        db = sqlite3.connect(path)
        db.execute("pragma wal_checkpoint(truncate)").fetchall()
        db.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(random.Random(1).randbytes(path.stat().st_size - 4096))
        for number in range(50, 60):
            session.turn_completed("y" * 2_000, "ok", ordinal=number)
    left = sum(inspect_spool(path, {}).events for path in away.spool_dir.glob("*.db"))
    assert left >= 10, "the events after the damage are kept"
    assert list(away.spool_dir.glob("*.corrupt"))


def test_counting_works_in_any_directory(tmp_path):
    """G10: a spool under a path with signs of URLs is counted like any other."""
    spool = files_in(tmp_path / "a#b %41?c").claim()
    put(spool, 1)
    spool.close()
    assert inspect_spool(spool.path, {}).events == 1
    assert inspect_spool(spool.path, {0: spool.last}).events == 0


# -- a full disk ----------------------------------------------------------------------------------


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of sixteen megabytes of its own; needs the right to mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def resize(place: Path, size: str) -> None:
    """Give a mounted file system another size."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)


def test_a_full_disk_refuses_and_can_drain(small_disk):
    """G1, G10: on a full disk `append` raises; the reserve lets rows be deleted, and it goes on."""
    spool = files_in(small_disk / "s", disk_reserve=4 << 20).claim()

    def put_and_tidy() -> None:
        put(spool, 1, 2_000)
        spool.tidy()

    taken = until_full(put_and_tidy)
    assert taken > 1_000
    assert not spool.path.with_suffix(".reserve").exists(), "the reserve was given up"
    assert len(event_numbers(spool)) == taken
    spool.delete_upto(spool.last)
    assert spool.rows_after(0, 1, 1) == []
    spool.tidy()  # without room it may do nothing, but must not fail
    resize(small_disk, "32m")
    spool.tidy()
    last = spool.last
    for number in range(100):
        assert put(spool, number, 2_000) > last
    spool.tidy()
    assert spool.path.with_suffix(".reserve").exists(), "there is a reserve again"
    spool.close()


def test_a_spool_that_is_no_database_is_named(tmp_path):
    """G1: opening garbage raises `SpoolCorrupt` with the file's name."""
    path = tmp_path / "x.db"
    path.write_bytes(b"no database at all, and long enough to be looked at" * 100)
    lock = FileLock(path.with_suffix(".lock"))
    lock.acquire()
    with pytest.raises(SpoolCorrupt, match=r"x\.db"):
        Spool(path, lock, clock=SYSTEM, max_bytes=1, disk_reserve=0)
    lock.release()


def test_a_spool_that_is_closed_lets_its_reader_end_first(spawn):
    """G9: a spool is closed while its sender reads: the agent's process goes on."""
    child = spawn("-m", "helpers.processes.closing", env={"PYTHONPATH": str(TESTS)})
    assert child.wait() == 0, child.output()
