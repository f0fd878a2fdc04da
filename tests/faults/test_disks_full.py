"""Row 6: the disk runs full under the spool, the append-only file, a SQLite provider (G1, G10)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.faults import sink
from helpers.faults.results import counted
from helpers.faults.rows import Report
from helpers.faults.scale import rounds
from helpers.faults.trial import Outcome, Trial
from helpers.processes.disks import MIB, Disk
from helpers.processes.waiting import still, wait_until
from helpers.redis.servers import RedisServer
from memorybus.errors import SpoolFull

MakeDisk = Callable[[Path, int], Disk]
WORKERS = 2


def begun(trial: Trial, some: int = 200) -> Trial:
    """Start the load and the workers, and wait until events are applied."""
    trial.write()
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    (name,) = trial.sinks
    wait_until(lambda: sink.count(trial.sink(name)) > some, "events flow", 60)
    return trial


def waiting(trial: Trial) -> int:
    """Count what was accepted and not applied."""
    (name,) = trial.sinks
    return len(trial.receipts()) - sink.count(trial.sink(name))


def outcome_of(trial: Trial, report: Report) -> Outcome:
    """End the run: everything accepted is applied, once, in order, and nothing is parked."""
    outcome = trial.finish()
    ((_, verdict),) = outcome.verdicts.items()
    report(
        faults=len(outcome.faults),
        **counted([verdict]),
        waited=outcome.faults[0].in_flight,
        refused=sum(outcome.done.refused.values()),
    )
    assert not verdict.faults()
    assert verdict.parked == 0
    return outcome


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(10))
def test_the_disk_is_full_under_the_spool(
    aof_redis, make_disk, make_trial, short_dir, report, number
):
    """G1, G10: `publish` refuses by name what it cannot keep; what it took is sent later."""
    disk = make_disk(short_dir, 32 * MIB)
    trial = begun(make_trial(aof_redis, "Keyed", spool_reserve=MIB, spool_keep=0.5))
    aof_redis.kill()
    assert trial.load is not None
    trial.load.wait_refused(SpoolFull)  # a writer that stands still is not refused yet
    wait_until(still(lambda: len(trial.receipts()), 0.5), "the spool takes no more", 60)
    trial.fault("disk full under the spool", waiting(trial))
    aof_redis.start()
    wait_until(lambda: waiting(trial) < trial.faults[0].in_flight // 2, "the spool drains", 60)
    disk.grow(256 * MIB)
    outcome = outcome_of(trial, report)
    assert outcome.done.refused.get("SpoolFull"), "no event was refused"


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(10))
def test_the_disk_is_full_under_the_append_only_file(small_redis, make_trial, report, number):
    """G1: Redis refuses writes while its disk is full; what waits in spools is sent after."""
    server, disk = small_redis
    trial = begun(make_trial(server, "Keyed"))
    client = server.client()
    wait_until(
        lambda: client.info("persistence")["aof_last_write_status"] != "ok", "the disk is full", 60
    )
    seen = waiting(trial)
    wait_until(lambda: waiting(trial) > seen + 500, "events wait in the spool", 60)
    trial.fault("disk full under the append-only file", waiting(trial))
    disk.grow(512 * MIB)
    wait_until(lambda: waiting(trial) < trial.faults[0].in_flight, "events flow again", 60)
    outcome_of(trial, report)


@pytest.fixture
def small_redis(make_disk: MakeDisk) -> Iterator[tuple[RedisServer, Disk]]:
    """Return a server whose append-only file lies on a disk of 4 MiB."""
    server = RedisServer(appendonly="yes", auto_aof_rewrite_percentage="0")
    disk = make_disk(server.directory, 4 * MIB)
    server.start()
    yield server, disk
    server.remove()


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(10))
def test_the_disk_is_full_under_a_sqlite_provider(
    make_redis, make_disk, make_trial, tmp_path, report, number
):
    """G4, G6: a provider without room pauses; nothing is parked for it, and nothing is lost."""
    trial = make_trial(make_redis(), "Transactional")
    disk = make_disk(trial.sink("transactional"), 3 * MIB)
    begun(trial)
    wait_until(lambda: disk.free() < MIB // 8 and trial.in_flight() > 2_000, "it is full", 60)
    # Redis is asked what waits: nobody can open a SQLite file while the disk has no room.
    trial.fault("disk full under a provider")
    disk.grow(512 * MIB)
    wait_until(lambda: trial.in_flight() < trial.faults[0].in_flight, "events flow again", 60)
    outcome_of(trial, report)
