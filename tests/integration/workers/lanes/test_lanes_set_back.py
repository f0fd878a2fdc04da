"""Lanes whose Redis came back older than its archive, or was wiped: what they may apply (G4)."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.making import MakeServer, MakeSettings
from helpers.processes.contexts import instance_context, open_instance
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.redis.log import read_health
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import NAME, home, recorded
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import LogReplaced
from memorybus.log.stream import EventLog
from memorybus.registry.lanes import LaneKeys
from memorybus.testing import FakeClock
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.hosting.lane_set import FULL_LOOK_SECONDS, LaneSet

P = SealedLog.PARTITION
COPIED, SEALED = 20, 50
"""The last number that the copy of Redis has, and the archive's last one."""

KINDS = ("Transactional", "Keyed", "KeyedSide", "Lookup", "LookupSide", "LookupBulkSide")
OURS: Any = QUICK | {"lease": 1e6, "batch": 10}
"""Nobody renews the leases here: they are to last for the whole test, however slow it is."""


class World:
    """A log with an archive, the server that it may lose, and the lanes of one provider."""

    def __init__(self, server: RedisServer, settings: Settings) -> None:
        self.server, self.settings = server, settings
        self.log = SealedLog(settings)

    @contextmanager
    def lanes(self, clock: Clock = SYSTEM) -> Iterator[LaneSet]:
        """Own all lanes of a fresh instance."""
        provider = make_instance(self.settings, NAME, SYSTEM)
        provider.open()
        instance = open_instance(instance_context(self.settings, NAME, clock), provider)
        lanes = LaneSet(instance, threading.Event(), lambda: None)
        try:
            lanes.balance(range(self.settings.partitions))
            yield lanes
        finally:
            lanes.leave()
            provider.shutdown()

    def apply(self, lanes: LaneSet) -> None:
        """Give the lanes turns until they have passed all."""

        def turn() -> bool:
            lanes.look_at_all()
            lanes.step(set())
            return self.progress() == max(self.log.head(), self.log.sealed())

        wait_until(turn, "all is applied")

    def progress(self) -> int:
        """Return the number that the lane of the partition has reached."""
        lane = self.log.keys.lane(P, NAME)
        return int(self.log.redis.hget(lane, "n") or 0)

    def grow(self, upto: int) -> None:
        """Append turns up to a number, and apply them."""
        self.log.append(upto - self.log.head())
        with self.lanes() as lanes:
            self.apply(lanes)

    def set_back(self) -> None:
        """Bring back the server's last copy."""
        self.server.restart()

    def applied(self) -> Counter[str]:
        """Return how often each turn was applied."""
        return Counter(text.split()[1] for text in texts(home(self.settings)))

    def asked(self) -> int:
        """Return how often the provider was asked for an event."""
        return calls(home(self.settings)).count("knows")


@pytest.fixture(name="world")
def _world(
    make_redis: MakeServer, make_settings: MakeSettings, request: pytest.FixtureRequest
) -> Iterator[World]:
    """Have a server that comes back as its last copy: only `save` writes one."""
    server = make_redis()
    world = World(server, make_settings(url=server.url, **OURS, **recorded(request.param)))
    yield world
    world.log.redis.close()


def set_back(world: World) -> None:
    """Copy Redis at `COPIED`, apply and seal up to `SEALED`, and bring the copy back."""
    world.grow(COPIED)
    world.server.client().save()
    world.grow(SEALED)
    run_once(world.log.settings)
    world.set_back()
    assert (world.log.head(), world.progress()) == (COPIED, COPIED)


def go_on(world: World, *, early: bool) -> None:
    """Let archiver and lanes go on after a set-back; `early`: the lanes are taken first."""
    if not early:
        run_once(world.log.settings)
    with world.lanes() as lanes:
        if early:
            lanes.look_at_all()
            lanes.step(set())
            run_once(world.log.settings)
        world.log.append(1)
        world.apply(lanes)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("world", KINDS, indirect=True)
def test_what_only_the_archive_has_is_in_doubt(world, *, early):
    """G4: events above what Redis can vouch for are applied once, by every class that can."""
    set_back(world)
    before = world.asked()
    go_on(world, early=early)
    assert world.applied() == {f"{n:05d}": 1 for n in range(1, SEALED + 2)}
    if "Lookup" in world.settings.provider[NAME]["kind"]:
        assert world.asked() - before >= SEALED - COPIED


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("world", ["Recording"], indirect=True)
def test_a_blind_provider_gets_nothing_twice(world, *, early):
    """G4, G6: what a `blind` provider may have had waits for an operator, who retries or discards.

    This holds also after one more restart.
    """
    set_back(world)
    run_once(world.log.settings)
    world.server.client().save()
    world.server.restart()
    go_on(world, early=early)
    assert world.applied() == {f"{n:05d}": 1 for n in range(1, SEALED + 1)}
    with closing(DeadLetters(world.settings)) as desk:
        letters = [one.stored.letter for one in desk.letters([NAME])]
    assert [letter.n for letter in letters] == list(range(COPIED + 1, SEALED + 2))
    assert "set back" in letters[0].reason


@pytest.mark.parametrize("world", ["Recording", "Lookup"], indirect=True)
def test_a_lane_that_began_later_doubts_nothing(world):
    """G4: a provider that is added after the set-back gets the archive's events without a doubt."""
    world.log.append(COPIED)
    world.server.client().save()
    world.log.append(SEALED - COPIED)
    run_once(world.log.settings)
    world.set_back()
    run_once(world.log.settings)
    LaneKeys(world.log.redis, world.settings).note_new_lanes(NAME)
    go_on(world, early=False)
    assert world.applied() == {f"{n:05d}": 1 for n in range(1, SEALED + 2)}


@pytest.mark.parametrize("world", ["Keyed"], indirect=True)
def test_a_lane_without_news_reads_what_only_the_archive_has(world):
    """G3: a lane that was there before the archiver reads on at its next look, without an event."""
    set_back(world)
    clock = FakeClock()
    with world.lanes(clock) as lanes:
        lanes.step(set())
        run_once(world.log.settings)
        clock.advance(FULL_LOOK_SECONDS)
        wait_until(lambda: lanes.step(set()) or world.progress() == SEALED, "it reads on")


@pytest.mark.parametrize("world", ["Keyed"], indirect=True)
def test_a_set_back_is_a_finding(world):
    """G7: what happened is named until an operator has read it, also once new events came."""
    set_back(world)
    go_on(world, early=True)
    (alarm,) = [a for a in read_health(world.settings).alarms if a.code == "archive_ahead"]
    assert f"events {COPIED + 1} to {SEALED}" in alarm.text
    world.log.redis.hdel(world.log.state, "set_back")
    assert "archive_ahead" not in {a.code for a in read_health(world.settings).alarms}


@pytest.mark.parametrize("world", [*KINDS, "Recording"], indirect=True)
def test_a_wiped_log_takes_along_what_lanes_know_of_it(world):
    """G4: after FLUSHALL an instance's lanes are opened anew: none reads the old log's archive."""
    world.log.grow(SEALED)
    with world.lanes() as lanes:
        lanes.look_at_all()
        lanes.step(set())
        world.log.redis.flushall()
        EventLog(world.log.redis, world.settings).open()
        world.log.append(3)
        lanes._all_leases.renew()
        with pytest.raises(LogReplaced):
            wait_until(lambda: lanes.balance(range(world.settings.partitions)), "it is missed")
    with world.lanes() as lanes:
        world.apply(lanes)
    applied = world.applied()
    assert set(applied.values()) == {1}
    assert {f"{n:05d}" for n in range(SEALED + 1, SEALED + 4)} <= applied.keys()
