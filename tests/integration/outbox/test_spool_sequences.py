"""Sequences that must not come again: after Ctrl-C, a lost tail, a clock that was set back."""

import sqlite3
from typing import Any

import pytest
import redis
from helpers.making import MakeSettings
from helpers.stories.spools import abandoned, files_of, numbers_in, numbers_logged, put
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import SpoolCorrupt
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import Sender, drain_orphans
from memorybus.outbox.spool import Spool
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
