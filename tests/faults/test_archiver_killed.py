"""Archivers killed, frozen and starved at named points: no gap, no overlap, every row once (G7)."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeSettings
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ, patient, recorded, worker
from memorybus.archive import archive
from memorybus.archive.objects.local import LocalObjects
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.redis.connect import connect_redis
from memorybus_workers.archiving.archiver import make_archiving, run_once
from memorybus_workers.lanes.leases import Leases

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

P = SealedLog.PARTITION
SHORT = QUICK | {"lease": 0.6, "call_timeout": 0.2}
PROGRAM = (
    "from memorybus.config.settings import load; "
    "from memorybus_workers.archiving.archiver import run_once; "
    "print('sealed', run_once(load()).events)"
)
POINTS = (
    "archive.written",
    "archive.verified",
    "archive.published",
    "archiver.after_publish",
    "archiver.after_seal",
)


@pytest.fixture(name="log")
def _log(redis_client: redis.Redis, make_settings: MakeSettings) -> Iterator[SealedLog]:
    log = SealedLog(make_settings(**SHORT))
    yield log
    log.redis.close()


def archive_all(log: SealedLog, settings: Settings | None = None) -> None:
    """Archive until everything is sealed; leases of the dead end meanwhile."""
    wait_until(
        lambda: run_once(patient(settings or log.settings)) and log.sealed() == log.head(),
        "all is sealed",
    )


def archiver(spawn: Spawn, settings: Settings, crash: str) -> Child:
    """Start a process that archives once, and may die at a point."""
    env = environ(settings) | {"MEMORYBUS_CRASH_AT": crash}
    return spawn("-c", PROGRAM, env=env)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("nth", [1, 3])
def test_an_archiver_killed_at_a_point_is_followed(log, spawn, point, nth):
    """G7: wherever an archiver dies, the next one goes on: nothing missing, nothing twice."""
    log.append(230)
    child = archiver(spawn, log.settings, f"{point}:{nth}")
    assert child.wait() == -9, child.output()
    log.assert_whole()
    log.append(30)
    archive_all(log)
    assert log.archived() == list(range(1, 261))
    assert log.logged() == [260]
    log.assert_whole()


def test_two_workers_never_both_publish(log, spawn):
    """G5, G7: two workers on one archive, events coming meanwhile: every row once, in order."""
    settings = log.settings
    both = [worker(spawn, _with(settings, recorded("Blind"))) for _ in range(2)]
    for _ in range(30):
        log.append(40)
    wait_until(lambda: log.sealed() == 1200, "all is sealed", 60)
    for child in both:
        child.terminate()
    assert log.archived() == list(range(1, 1201))
    log.assert_whole()


def test_a_frozen_archiver_that_comes_back_changes_nothing(log, spawn):
    """G5: who slept past its lease is refused by Redis and by the manifest; nothing is twice."""
    settings = _with(log.settings, recorded("Blind"))
    log.append(1_000)
    first = worker(spawn, settings)
    wait_until(lambda: log.sealed() > 0, "the first one archives", 60)
    first.freeze()
    wait_until(lambda: not list(log.redis.scan_iter("*lease:@archive")), "its lease has ended")
    second = worker(spawn, settings)
    log.append(200)
    wait_until(lambda: log.sealed() == 1_200, "the second goes on", 60)
    first.thaw()
    log.append(100)
    wait_until(lambda: log.sealed() == 1_300, "they go on together", 60)
    for child in (first, second):
        child.terminate()
    assert log.archived() == list(range(1, 1_301))
    log.assert_whole()


class Stuck(LocalObjects):
    """A store that takes its time with one file, until it is let go."""

    def __init__(self, root: Path, kind: str) -> None:
        super().__init__(root)
        self.kind = kind
        self.reached, self.go = threading.Event(), threading.Event()

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet, at last."""
        if self.kind in name and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(90)
        return super().put_new(name, data)


@pytest.mark.parametrize("kind", ["segments/", "manifest-"])
def test_a_store_slower_than_the_lease_names_nothing(log, monkeypatch, kind):
    """G5, G7: a write that ends after its lease did has lost to the archiver that went on."""
    log.append(120)
    stuck = Stuck(Path(log.archive().where), kind)
    leases = Leases(log.settings, SYSTEM, "slow")  # nobody renews: Redis was away from it
    with monkeypatch.context() as patched:
        patched.setattr(archive, "open_objects", lambda *_: stuck)
        slow = make_archiving(log.settings, SYSTEM, leases, client := connect_redis(log.settings))
        done: list[int] = []
        thread = threading.Thread(target=lambda: done.append(slow.run(force=True)))
        thread.start()
        assert stuck.reached.wait(30)
    wait_until(lambda: not list(log.redis.scan_iter("*lease:@archive")), "its lease has ended")
    assert run_once(patient(log.settings)).events == 120
    named = sorted(log.archive().objects.list("p01"), key=lambda one: one.name)
    stuck.go.set()
    thread.join(30)
    client.close()
    assert (done, slow.errors) == ([0], {})
    assert log.archive().objects.list("p01") == named
    log.append(30)
    archive_all(log)
    assert log.archived() == list(range(1, 151))
    log.assert_whole()


def test_redis_killed_while_an_archiver_works(make_redis, make_settings, spawn):
    """G7: Redis dies and comes back again and again: what was sealed stays, the rest follows."""
    server = make_redis(appendonly="yes", appendfsync="always")
    log = SealedLog(make_settings(url=server.url, **SHORT))
    worker(spawn, _with(log.settings, recorded("Blind")))
    for _ in range(3):
        log.append(300)
        server.restart()
    wait_until(lambda: log.sealed() == 900, "all is sealed", 60)
    assert log.archived() == list(range(1, 901))
    log.assert_whole()
    log.redis.close()


def test_a_full_disk_keeps_the_log(log, make_settings, make_disk, tmp_path):
    """G7, G10: where the archive's disk is full nothing is trimmed; with room it goes on."""
    disk = make_disk(tmp_path / "archive", 64 << 10)
    settings = make_settings(**SHORT, archive=str(disk.path))
    log.settings = settings
    log.append(2_000, words=60)
    assert "No space left" in run_once(patient(settings)).errors["p01"]
    log.assert_whole()
    disk.grow(64 << 20)
    archive_all(log)
    log.assert_whole()
    assert log.archived() == list(range(1, 2_001))


def test_a_broken_store_holds_up_nothing_else(log, make_settings, spawn, tmp_path):
    """G9, G10: a worker whose archive cannot be written lives, says why, and trims nothing."""
    (tmp_path / "file").write_text("in the way")
    settings = make_settings(**SHORT, archive=str(tmp_path / "file"), **recorded("Blind"))
    log.append(60)
    child = worker(spawn, settings)
    status = wait_until(
        lambda: s if "file" in (s := read_status(settings).archive).error else None, "it says so"
    )
    assert not status.working
    assert child.alive
    assert child.output().count("nothing is archived") == 1
    assert log.logged() == list(range(1, 61))


def _with(settings: Settings, more: dict[str, object]) -> Settings:
    return msgspec.structs.replace(settings, **more)
