"""What is wrong with one partition, or one segment, holds up the archiver nowhere else."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.archive.archives import archive_in, sealed
from helpers.archive.object_servers import environment
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.processes.waiting import wait_until
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM
from memorybus.errors import ArchiveDamaged, ArchiveUnavailable
from memorybus.health.monitor import read_status
from memorybus.ids import new_rng
from memorybus.query.query import Query
from memorybus.testing import no_crash
from memorybus_workers.archiving.archiver import ArchiverThread, run_once
from memorybus_workers.archiving.compactor import Compactor
from memorybus_workers.archiving.retention import Policy

pytestmark = pytest.mark.servers

P = SealedLog.PARTITION


class Other(SealedLog):
    """The same log's other partition."""

    PARTITION = 0


@pytest.fixture(name="other")
def _other(log: SealedLog) -> Iterator[Other]:
    other = Other(log.settings)
    yield other
    other.redis.close()


def manifest(log: SealedLog) -> Path:
    """Return the newest manifest of a log's partition."""
    return max(log.settings.data_dir.glob(f"archive/*/*/p{log.PARTITION:02d}/manifest-*"))


def on_a_bad_sector(file: Path) -> bytes:
    """Let every read of a file fail with EIO; return what was in it."""
    data = file.read_bytes()
    file.unlink()
    file.symlink_to("/proc/self/mem")
    return data


def test_one_manifest_that_cannot_be_read_stops_one_partition(log, other):
    """G7: where a partition's files cannot be reached the others are sealed, and it is named."""
    for one in (other, log):
        one.append(20)
    run_once(log.settings)
    bad = manifest(other)
    data = on_a_bad_sector(bad)
    for one in (other, log):
        one.append(20)
    done = run_once(log.settings)
    assert (done.events, log.sealed(), other.sealed()) == (20, 40, 20)
    assert list(done.errors) == ["p00"]
    assert f"{bad}: Input/output error" in done.errors["p00"]
    bad.unlink()
    bad.write_bytes(data)
    done = run_once(log.settings)
    assert (done.events, done.errors, other.sealed()) == (20, {}, 40)


def test_the_thread_goes_on_beside_it_and_says_so(log, other):
    """G7, G10: a worker's archiver, which never saw that partition well, seals the others."""
    for one in (other, log):
        one.append(20)
    run_once(log.settings)
    on_a_bad_sector(manifest(other))
    log.append(20)
    archiver = ArchiverThread(log.settings, SYSTEM, "w", new_rng(), no_crash)
    archiver.start()
    try:
        wait_until(lambda: log.sealed() == 40, "the sound partition is sealed")
        wait_until(
            lambda: "Input/output error" in read_status(log.settings).archive.error, "it is told"
        )
    finally:
        archiver.stop()


def test_a_store_that_is_away_is_asked_once(log, other, make_settings, monkeypatch):
    """G10: where nothing at all can be reached, a look ends with its first partition."""
    for one in (other, log):
        one.append(20)
    for name, value in environment("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArchiveUnavailable, match="check the network"):
        run_once(make_settings(**QUICK, archive="s3://archive/memories"))
    assert (log.sealed(), other.sealed()) == (0, 0)


def test_what_is_forgotten_leaves_the_sound_segments(log):
    """G7: one damaged segment is named, and keeps nothing of what is forgotten in the others."""
    log.append(50)
    log.append(50, user="eve")
    log.append(10)
    log.append(5, user="eve")
    run_once(log.settings)
    damaged, *sound = log.archive().segments(P)
    path = next(log.settings.data_dir.rglob(damaged.file.rpartition("/")[2]))
    path.write_bytes(b"x" * damaged.bytes)
    at = round(time.time() * 1000)
    log.archive().forget(Tombstone(id="t", query=Query(users=("eve",)), at=at))
    done = run_once(log.settings)
    assert damaged.file in done.errors["p01"]
    assert [(one.first.n, one.kept) for one in log.archive().segments(P)] == [
        (damaged.first.n, 50),
        (51, 0),
        (101, 10),
    ]
    assert sum(one.kept for one in sound) == 65


def test_small_segments_are_merged_around_damage(make_settings, tmp_path):
    """G7, G10: neighbours on both sides of a damaged segment are merged; it stays where it is."""
    sealed(tmp_path, 9, 5)
    archive = archive_in(tmp_path)
    damaged = archive.segments(0)[4]
    (tmp_path / "p00" / damaged.file).unlink()
    with pytest.raises(ArchiveDamaged, match=f"{damaged.file}: is missing"):
        Compactor(make_settings(segment_events=1_000)).work(archive, 0, Policy(), 0)
    found = archive.segments(0)
    assert [(one.first.n, one.last.n) for one in found] == [(1, 20), (21, 25), (26, 45)]
    assert found[1].sha256 == damaged.sha256
