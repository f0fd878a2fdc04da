"""A lane that fails, for whatever reason, stands still alone: no other loses its turn (G3, G6)."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import redis
from helpers.archive.sealed_log import QUICK
from helpers.making import MakeSettings
from helpers.processes.contexts import instance_context, open_instance
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    home,
    partition,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import LetterRequest, LetterRequests
from memorybus.errors import ArchiveUnavailable
from memorybus.health.finding import Finding
from memorybus.health.monitor import read_status
from memorybus.ids import new_id
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import Keys, lane_name
from memorybus.testing import FakeClock
from memorybus_workers.apply.parallel import ParallelApplier
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.archiving.sealer import Sealer
from memorybus_workers.dead_letters.redo import Redo
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.hosting.lane_set import LaneSet
from memorybus_workers.hosting.runner import Runner
from memorybus_workers.lanes import halts as halts_of_lanes
from memorybus_workers.lanes.lane import Lane

KINDS = ["Transactional", "Keyed", "KeyedSide", "Lookup", "Recording"]
every_kind = pytest.mark.parametrize("kind", KINDS)
BROKEN = "a mistake of ours"


def halts(settings: Settings) -> list[Finding]:
    """Return the alarms of lanes that stand still."""
    return [alarm for alarm in read_status(settings).alarms if alarm.code == "lane_halted"]


class Trap:
    """Lets something fail for one partition for as long as it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(halts_of_lanes, "FIRST_RETRY_SECONDS", 0.05)
        self.partition: int | None = None
        self.sprung = 0
        self.opened = 0
        self._patch = monkeypatch
        serve = Runner._serve

        def counted(runner: Runner) -> None:
            self.opened += 1
            serve(runner)

        monkeypatch.setattr(Runner, "_serve", counted)

    def lay(self, owner: type, name: str) -> None:
        """Let a method of lanes, or one that is called with a lane first, fail."""
        real = getattr(owner, name)

        def call(one: Any, *given: Any, **named: Any) -> Any:
            lane = one if isinstance(one, Lane) else given[0]
            if lane.partition == self.partition:
                self.sprung += 1
                raise ZeroDivisionError(BROKEN)
            return real(one, *given, **named)

        self._patch.setattr(owner, name, call)


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch) -> Trap:
    """Return a trap for one lane."""
    return Trap(monkeypatch)


@every_kind
@pytest.mark.parametrize("where", ["read", "begin"])
def test_a_lane_that_fails_stands_still_alone(redis_client, make_settings, trap, kind, where):
    """G3, G6: a lane that fails is told and tried again; others go on, and it does once mended."""
    settings = make_settings(partitions=4, **PATIENT, **recorded(kind))
    names = spread_sessions(settings, 4)
    trap.lay(Lane, where)
    trap.partition = partition(settings, names[0])
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        for word in ("one", "two"):
            for name in names:
                say(bus, name, f"{name} {word}")
        assert bus.flush("logged", 10)
        others = sorted(f"{name} {word}" for name in names[1:] for word in ("one", "two"))
        wait_until(lambda: sorted(texts(home(settings))) == others, "the other lanes go on")
        # One look: each try takes the reason away for a moment.
        (alarm,) = wait_until(lambda: halts(settings), "status tells which lane is stopped")
        assert alarm.subject == f"{NAME}:{lane_name(trap.partition)}"
        assert BROKEN in alarm.text
        wait_until(lambda: trap.sprung >= 3, "it is tried again")
        assert trap.opened == 1, "the instance is sound"
        trap.partition = None
        wait_applied(redis_client, settings)
        wait_until(lambda: not halts(settings), "status tells that nothing is stopped")
    assert texts(home(settings)).count(f"{names[0]} one") == 1
    assert len(texts(home(settings))) == 8


def test_a_failure_of_what_came_back_halts_its_lane_alone(redis_client, make_settings, trap):
    """G3, G6: where keys run side by side, what fails after a call is its lane's failure, too."""
    settings = make_settings(partitions=2, **PATIENT, **recorded("KeyedSide"))
    bad, good = spread_sessions(settings, 2)
    trap.lay(ParallelApplier, "_settle")
    trap.partition = partition(settings, bad)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, "one")
        say(bus, good, "two")
        wait_until(lambda: halts(settings), "status tells that a lane is stopped")
        say(bus, good, "three")
        wait_until(lambda: "three" in texts(home(settings)), "the other lane goes on")
        assert trap.opened == 1
        trap.partition = None
        wait_applied(redis_client, settings)


def test_dead_letters_that_fail_wait_alone(redis_client, make_settings, trap, flag):
    """G6: a retry that stumbles over one lane's letters stops neither that lane nor others."""
    settings = make_settings(partitions=2, **PATIENT, **recorded("Keyed"))
    bad, good = spread_sessions(settings, 2)
    place, keys = partition(settings, bad), Keys(settings.namespace)
    trap.lay(Redo, "_handle_letter")
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, f"!permanent={flag} x")
        wait_until(lambda: redis_client.xlen(keys.dead(place, NAME)), "it is parked")
        trap.partition = place
        desk = DeadLetters(settings)
        (dead,) = desk.letters([NAME])
        desk.close()
        request = LetterRequest(new_id(), place, "retry", keys=(dead.stored.letter.key,))
        LetterRequests(redis_client, keys, NAME).send([request])
        wait_until(lambda: trap.sprung, "the retry stumbles")
        say(bus, good, "two")
        wait_until(lambda: "two" in texts(home(settings)), "the other lane goes on")
        wait_applied(redis_client, settings)
        assert trap.opened == 1


def test_a_store_that_fails_is_opened_anew(redis_client, make_settings, trap):
    """G6: what a provider's own store raises outside of events is the instance's failure."""
    settings = make_settings(partitions=2, **recorded("Transactional"))
    kind = type(make_instance(settings, NAME, SYSTEM))
    real, failing = kind.progress, [True]

    def progress(store: Any, lane: str) -> Any:
        if failing[0]:
            raise ZeroDivisionError(BROKEN)
        return real(store, lane)

    trap._patch.setattr(kind, "progress", progress)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one")
        wait_until(lambda: trap.opened >= 2, "the instance is opened anew")
        assert halts(settings) == []
        failing[0] = False
        wait_applied(redis_client, settings)


def test_a_damaged_field_of_a_lane_halts_it_alone(redis_client, make_settings):
    """G6: a lane whose hash holds nonsense, over which a script trips, takes no other's turn."""
    settings = make_settings(partitions=2, **PATIENT, **recorded("Keyed"))
    bad, good = spread_sessions(settings, 2)
    keys = Keys(settings.namespace)
    redis_client.hset(keys.lane(partition(settings, bad), NAME), "sent", "nonsense")
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, good, "one")
        wait_until(lambda: texts(home(settings)) == ["one"], "the other lane goes on")
        wait_until(lambda: halts(settings), "status tells which is stopped")


def test_a_partition_that_cannot_be_sealed_holds_up_no_other(redis_client, make_settings, trap):
    """G7: whatever sealing one partition fails of, the others are sealed."""
    settings = make_settings(**QUICK)
    first, second = spread_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        for name in (first, second):
            say(bus, name, "one")
        assert bus.flush("logged", 10)
    trap.lay(Sealer, "work")
    trap.partition = 0
    done = run_once(settings)
    assert list(done.errors) == ["p00"]
    assert BROKEN in done.errors["p00"]
    assert redis_client.hget(Keys(settings.namespace).state(1), "sealed") == b"2"
    trap.partition = None
    assert run_once(settings).errors == {}


# -- how often a lane that stands still is looked at ----------------------------------------------


class Stage(NamedTuple):
    """Lanes that a test gives their turns, on a clock of its own."""

    lanes: LaneSet
    clock: FakeClock
    settings: Settings


@pytest.fixture(params=["Keyed", "KeyedSide"])
def stage(
    redis_client: redis.Redis, make_settings: MakeSettings, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    """Own all lanes of an instance of which one has a delayed event."""
    settings = make_settings(**QUICK | {"lease": 1e6}, **recorded(request.param))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "!transient= x")
        assert bus.flush("logged", 10)
    clock = FakeClock()
    provider = make_instance(settings, NAME, SYSTEM)
    provider.open()
    instance = open_instance(instance_context(settings, NAME, clock), provider, attempts=1_000)
    lanes = LaneSet(instance, threading.Event(), lambda: None)
    lanes.balance(range(settings.partitions))
    try:
        yield Stage(lanes, clock, settings)
    finally:
        lanes.leave()
        provider.shutdown()


def test_an_idle_lane_that_was_lost_is_taken_again(stage, redis_client):
    """G9: the loss of a lane that has nothing to do is noticed without an event."""
    place = partition(stage.settings, "s")
    lane = Keys(stage.settings.namespace).lane(place, NAME)
    (lost,) = (one for one in stage.lanes.leases() if one.lane.key == lane)
    epoch = lost.lane.epoch
    redis_client.hset(lane, "epoch", epoch + 1)
    redis_client.delete(lost.key)
    stage.lanes._all_leases.renew()
    assert lost.lost
    stage.lanes.balance(range(stage.settings.partitions))
    assert [one.lane.epoch for one in stage.lanes.leases() if one.key == lost.key] == [epoch + 2]


def away(*_: Any) -> Sequence[LoggedEvent]:
    """Fail as a read does whose archive is away."""
    raise ArchiveUnavailable("away")


def test_a_halted_lane_does_not_wake_its_runner(stage, monkeypatch):
    """G10: with unfinished work in a lane that stands still a runner takes a few steps a second."""
    place = partition(stage.settings, "s")

    def delayed() -> bool:
        stage.lanes.step({place})
        return stage.lanes._lanes[place].window.next_at() < float("inf")

    wait_until(delayed, "its event was tried, and waits for another try")
    monkeypatch.setattr(Lane, "read", away)
    monkeypatch.setattr("memorybus_workers.lanes.halts.FIRST_RETRY_SECONDS", 30.0)
    stage.clock.advance(3.0)
    wait_until(lambda: stage.lanes.step({place}) or place in stage.lanes._halts._halts, "it halts")
    stage.lanes.applier.dirty.add(stage.lanes._lanes[place])
    until, steps = stage.clock.monotonic() + 10.0, 0
    while stage.clock.monotonic() < until:
        stage.lanes.step(set())
        steps += 1
        assert steps <= 40, "two steps in a second are enough"
        stage.clock.advance(max(stage.lanes.seconds_to_rest(), 0.001))
