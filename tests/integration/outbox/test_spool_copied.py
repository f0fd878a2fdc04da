"""A copied data directory: a cloned machine, an image, a restored volume; nobody shares an id."""

import shutil
from pathlib import Path

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.stories.scenario import log_length, partition
from helpers.stories.spools import abandoned, files_of, numbers_in, numbers_logged, put
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.log.stream import EventLog
from memorybus.outbox import database
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import drain_orphans
from memorybus.redis.connect import connect_redis


@pytest.fixture(name="settings")
def _settings(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    return make_settings(compress_min_bytes=1 << 30)


def copied(settings: Settings, short_dir: Path) -> Settings:
    """Copy the data directory, as another host has it."""
    other = short_dir / "copy"
    shutil.copytree(settings.spool_dir, msgspec.structs.replace(settings, data_dir=other).spool_dir)
    return msgspec.structs.replace(settings, data_dir=other)


def test_who_starts_on_a_copy_is_another_producer(settings, short_dir):
    """G2: a copied spool keeps its events, but a new owner begins one of its own."""
    path = abandoned(settings, 3)
    clone = files_of(copied(settings, short_dir)).claim()
    original = files_of(settings).claim()
    assert original.producer == path.stem
    assert clone.producer != original.producer
    assert numbers_in(clone) == []
    for spool in (clone, original):
        spool.close()


def test_another_boot_is_another_producer(settings, tmp_path, monkeypatch):
    """G2: a clone of a whole machine has all but its boot from the original."""
    path = abandoned(settings, 3)
    (tmp_path / "boot").write_text("another\n")
    monkeypatch.setattr(database, "_BOOT", tmp_path / "boot")
    clone = files_of(settings).claim()
    assert clone.producer != path.stem
    clone.close()


def test_a_spool_of_an_earlier_release_is_drained(settings):
    """G1: a spool that does not say where it was made is sent, and nobody goes on with it."""
    files = files_of(settings)
    path = abandoned(settings, 3)
    spool = next(files.adopt_all())
    spool._in.execute("drop table born")
    spool.close()
    fresh = files.claim()
    assert fresh.producer != path.stem
    client = connect_redis(settings)
    assert drain_orphans(files, client, SendingContext(settings)) == 3
    assert numbers_logged(client, settings) == [0, 1, 2]
    fresh.close()


def test_what_was_copied_is_logged_once(redis_client, settings, short_dir):
    """G1, G2: both hosts send what lies in the copied spool, and it is in the log once."""
    abandoned(settings, 3)
    hosts = [settings, copied(settings, short_dir)]
    for number, host in enumerate(hosts):
        spool = files_of(host).claim()
        put(spool, 100 + number)
        spool.close()
    for host in hosts * 2:
        drain_orphans(files_of(host), redis_client, SendingContext(host))
    assert sorted(numbers_logged(redis_client, settings)) == [0, 1, 2, 100, 101]


def test_two_hosts_on_copies_lose_nothing(redis_client, settings, short_dir):
    """G1, G2: agents on a data directory and its copy publish at once: all is logged, once."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("before", "ok")
        assert bus.flush("logged", 25)
    hosts = [settings, copied(settings, short_dir)]
    buses = [MemoryBus.connect(host) for host in hosts]
    said = {"before"}
    for number in range(50):
        for name, bus in zip("ab", buses, strict=True):
            said.add(f"{name} {number}")
            bus.session("s", warm=False).turn_completed(f"{name} {number}", "ok")
    for bus in buses:
        assert bus.flush("logged", 25)
        bus.close()
    assert log_length(redis_client, settings) >= 101
    found = EventLog(redis_client, settings).read(partition(settings, "s"), count=10_000)
    events = [event.envelope.event for event in found]
    turns = [event.user for event in events if hasattr(event, "user")]
    assert sorted(turns) == sorted(said)
