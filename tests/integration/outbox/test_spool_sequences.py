"""Sequences and producers that must not come again: after Ctrl-C, a lost tail, in a copy."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.redis.log import logged
from helpers.stories.scenario import log_length
from helpers.stories.spools import abandoned, files_of, numbers_in, numbers_logged, put
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import SpoolCorrupt
from memorybus.events import TurnCompleted
from memorybus.outbox import database
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender, drain_orphans
from memorybus.outbox.spool import Spool
from memorybus.redis.connect import connect_redis
from memorybus.testing import FakeClock


@pytest.fixture(name="settings")
def _settings(redis_client: redis.Redis, make_settings: MakeSettings) -> Settings:
    return make_settings(compress_min_bytes=1 << 30)


@pytest.fixture(name="clock")
def _clock() -> FakeClock:
    return FakeClock(SYSTEM.now_ms())


def sender_of(spool: Spool, client: redis.Redis, settings: Settings) -> Sender:
    """Return a sender that knows what Redis has."""
    sender = Sender(spool, client, SendingContext(settings))
    sender.resync()
    return sender


class Interrupted:
    """A connection whose user presses Ctrl-C during a statement, which is done or not."""

    def __init__(self, db: sqlite3.Connection, done: bool) -> None:
        self._db = db
        self._done = done

    def execute(self, *statement: Any) -> None:
        """Run a statement, or not; then be interrupted."""
        if self._done:
            self._db.execute(*statement)
        raise KeyboardInterrupt


@pytest.mark.parametrize("done", [True, False], ids=["after the insert", "before it"])
def test_ctrl_c_while_an_event_is_taken(redis_client, settings, clock, monkeypatch, done):
    """G1, G2: an interrupted `append` uses up its sequence; a gap does not stop sending."""
    spool = files_of(settings, clock).claim()
    put(spool, 0)
    monkeypatch.setattr(spool, "_in", Interrupted(spool._in, done))
    with pytest.raises(KeyboardInterrupt):
        put(spool, 1)
    monkeypatch.undo()
    put(spool, 2)
    expected = [0, 1, 2] if done else [0, 2]
    assert numbers_in(spool) == expected
    sender = sender_of(spool, redis_client, settings)
    while sender.send():
        pass
    assert sender.cursor >= spool.last
    assert numbers_logged(redis_client, settings) == expected
    spool.close()


def lose_tail(settings: Settings, client: redis.Redis, clock: FakeClock) -> Spool:
    """Send three events and let a power cut take the last two from the spool, and an hour."""
    path = abandoned(settings, 3, clock=clock)
    files = files_of(settings, clock)
    drain_orphans(files, client, SendingContext(settings, clock))
    db = sqlite3.connect(path)
    db.execute("delete from events where seq > (select min(seq) from events)")
    db.commit()
    db.close()
    clock.wall_ms -= 3_600_000
    return files.claim()


def test_a_lost_tail_and_a_clock_set_back(redis_client, settings, clock):
    """G1: sequences go on above what Redis has, also if the spool does not know of them."""
    spool = lose_tail(settings, redis_client, clock)
    sender = sender_of(spool, redis_client, settings)
    put(spool, 7)
    sender.send()
    assert numbers_logged(redis_client, settings) == [0, 1, 2, 7]
    sender_of(spool, redis_client, settings)  # nothing is wrong with it
    spool.close()


@pytest.mark.parametrize("owners", [1, 2])
def test_events_below_a_lost_tail_are_no_resends(redis_client, settings, clock, owners):
    """G1: what was spooled under numbers that Redis has, before it could be asked, is sent too."""
    spool = lose_tail(settings, redis_client, clock)
    put(spool, 7)
    if owners == 2:
        spool.close()
        spool = files_of(settings, clock).claim()
    put(spool, 8)
    with pytest.raises(SpoolCorrupt, match="lost rows"):
        sender_of(spool, redis_client, settings)
    spool.close()
    for _ in range(2):
        drain_orphans(files_of(settings, clock), redis_client, SendingContext(settings, clock))
    assert numbers_logged(redis_client, settings) == [0, 1, 2, 7, 8]


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
    events = [event.envelope.event for event in logged(settings)]
    turns = [event.user for event in events if isinstance(event, TurnCompleted)]
    assert sorted(turns) == sorted(said)
