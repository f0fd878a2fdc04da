"""Lanes handed over, kept after all, or lost: none is held by an owner that cannot work."""

import threading
from typing import Any

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, effects, texts
from helpers.stories.scenario import (
    NAME,
    begin_after_a_failure,
    home,
    leave_dead,
    partition,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus_workers.hosting.host import ProviderHost
from memorybus_workers.membership.presence import Presence
from memorybus_workers.processes.worker import Worker

SLOW = "!takes=0.02"


def runner_of(running: Worker) -> Any:
    """Return what works for the worker's only provider at the moment."""
    return running._hosts.all[0]._runner


def owner(client: redis.Redis, settings: Settings, place: int) -> str:
    """Return who holds a lane's lease, "" for nobody."""
    raw: Any = client.get(Keys(settings.namespace).lease(place, NAME))
    return (raw or b":").decode().partition(":")[2]


def epoch(client: redis.Redis, settings: Settings) -> int:
    """Return the newest epoch of the only lane, 0 if it never had an owner."""
    found: Any = client.hget(Keys(settings.namespace).lane(0, NAME), "epoch")
    return int(found or 0)


def stop_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the worker from assigning lanes; wait until no look of before is under way."""
    rests = threading.Event()
    monkeypatch.setattr(Presence, "update", lambda *_: rests.set())
    assert rests.wait(20), "the worker does not look"


def test_a_lane_that_cannot_be_handed_over_expires(redis_client, make_settings, monkeypatch, flag):
    """G5: a lane left while a call is under way is not renewed any more, and goes on elsewhere."""
    settings = make_settings(partitions=1, call_timeout=0.4, lease=1.0, **recorded("KeyedSide"))
    monkeypatch.setattr(ProviderHost, "watch", lambda *_: None)  # the call stays under way
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, "a", f"!hang={flag} x")
        wait_until(lambda: calls(home(settings)), "a call is under way")
        lanes = runner_of(running)._lanes
        before = epoch(redis_client, settings)
        lanes._redis.connection._sock.shutdown(2)
        say(bus, "b", "news")
        wait_until(lambda: runner_of(running)._lanes is not lanes, "the lanes were left")
        wait_until(lambda: epoch(redis_client, settings) > before, "the lane is taken again")
        flag.unlink()
        wait_applied(redis_client, settings)
    assert sorted(texts(home(settings))) == [f"!hang={flag} x", "news"]


def test_a_lane_that_is_wanted_again_while_it_drains_goes_on(
    redis_client, make_settings, monkeypatch, flag
):
    """G3: a hand-over that is called off leaves the lane at work, in the same epoch."""
    settings = make_settings(partitions=1, call_timeout=25.0, lease=40.0, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        runner = runner_of(running)
        say(bus, "a", f"!hang={flag} one")
        wait_until(lambda: calls(home(settings)), "a call is under way")
        before = epoch(redis_client, settings)
        with monkeypatch.context() as still:
            stop_looking(still)
            runner.assign_lanes(frozenset())
            wait_until(lambda: runner._lanes.applier._leaving, "the lane drains")
            runner.assign_lanes(frozenset({0}))
            flag.unlink()
            say(bus, "b", "two")
            assert bus.flush(timeout=25)
            wait_applied(redis_client, settings)
        assert epoch(redis_client, settings) == before
    assert sorted(texts(home(settings))) == [f"!hang={flag} one", "two"]


@pytest.mark.parametrize("where", ["transaction", "progress"])
def test_a_store_that_hangs_while_a_lane_begins_gives_it_back(
    redis_client, make_settings, spawn, flag, where
):
    """G5, G6: a lane whose owner hangs before it could begin is taken again; nothing is lost."""
    how = {
        "transaction": recorded("Transactional", begin=f"!hang={flag}"),
        "progress": recorded("SlowToBegin", hangs=str(flag)),
    }
    settings = make_settings(partitions=1, call_timeout=0.3, lease=1.0, **how[where])
    with MemoryBus.connect(settings) as bus:
        say(bus, "a", "one")
        assert bus.flush(timeout=25)
        worker(spawn, settings, wait=False)
        before = wait_until(lambda: epoch(redis_client, settings), "a first owner begins")
        wait_until(lambda: epoch(redis_client, settings) > before, "another one begins")
        flag.unlink()
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["one"]


def test_a_lane_lost_while_its_call_returns_costs_the_others_nothing(
    redis_client, make_settings, flag
):
    """G5: if one lane is another's by now, what came back for it is dropped, the rest goes on."""
    settings = make_settings(partitions=2, call_timeout=8.0, lease=10.0, **recorded("KeyedSide"))
    lost, kept = spread_sessions(settings, 2)
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        lanes = runner_of(running)._lanes
        say(bus, lost, f"!refused_later={flag} x")
        say(bus, kept, f"!hang={flag} fine")
        wait_until(lambda: len(calls(home(settings))) == 2, "both are called")
        redis_client.hincrby(keys.lane(partition(settings, lost), NAME), "epoch")
        flag.unlink()
        wait_applied(redis_client, settings)
        assert runner_of(running)._lanes is lanes, "the instance was not opened anew"
        assert redis_client.xlen(keys.dead(partition(settings, lost), NAME)) == 1
    assert texts(home(settings)) == [f"!hang={flag} fine"]


def test_a_slow_serial_provider_ends_in_good_order(redis_client, make_settings, spawn):
    """G5: told to end in the midst of long batches, a worker commits what it did and gives up."""
    timings = {"call_timeout": 10.0, "lease": 30.0}
    settings = make_settings(partitions=4, batch=400, **timings, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        for name in spread_sessions(settings, 4):
            say(bus, name, *[f"{SLOW} {number}" for number in range(400)])
        assert bus.flush(timeout=25)
        child = worker(spawn, settings)
        wait_until(lambda: len(texts(home(settings))) > 50, "it is busy")
        assert child.terminate() == 0
    assert [owner(redis_client, settings, place) for place in range(4)] == [""] * 4
    applied = effects(home(settings))
    assert len(applied) < 4 * 400, "it did not end before its work was done"
    for place in range(4):
        n: Any = redis_client.hget(Keys(settings.namespace).lane(place, NAME), "n")
        mine = [e.n for e in applied if partition(settings, e.session) == place]
        assert int(n or 0) >= max(mine, default=0), "what was applied is committed"


def test_a_busy_serial_provider_takes_lanes_over_in_time(redis_client, make_settings, spawn):
    """G5: two seconds after a dead worker's leases have ended, a busy one works on its lanes.

    The time is counted in the busy one's calls: a slow machine makes fewer of them.
    """
    settings = make_settings(
        partitions=4, batch=200, lease=1.0, call_timeout=0.5, **recorded("Keyed")
    )
    first, second = worker(spawn, settings), worker(spawn, settings)

    def owned(pid: int) -> list[int]:
        return [p for p in range(4) if f"-{pid}-" in owner(redis_client, settings, p)]

    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: len(owned(first.pid)) == len(owned(second.pid)) == 2, "shared")
        for name in spread_sessions(settings, 4):
            say(bus, name, *[f"{SLOW} {number}" for number in range(400)])
        assert bus.flush(timeout=25)
        wait_until(lambda: len(calls(home(settings), second.pid)) > 20, "the second is busy")
        first.kill()
        before = len(calls(home(settings), second.pid))
        wait_until(lambda: len(owned(second.pid)) == 4, "taken over")
        made = len(calls(home(settings), second.pid)) - before
        second.kill()
    assert made < 200, "three seconds are 150 calls; its own lanes have 800"


@pytest.mark.parametrize("kind", ["Keyed", "KeyedSide", "Transactional"])
def test_a_lane_given_up_takes_its_failing_events_along(
    redis_client, make_settings, monkeypatch, flag, kind
):
    """G10: nothing is kept of events that failed here and are another worker's to apply."""
    settings = make_settings(partitions=1, attempts=1000, **recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        runner = runner_of(running)
        say(bus, "a", f"!transient={flag} x")
        wait_until(lambda: runner.failing_events, "it has failed")
        with monkeypatch.context() as still:
            stop_looking(still)
            runner.assign_lanes(frozenset())
            wait_until(lambda: not owner(redis_client, settings, 0), "the lane is given up")
            wait_until(lambda: not runner.failing_events, "and forgotten")
        flag.unlink()
        runner.assign_lanes(frozenset({0}))
        wait_applied(redis_client, settings)


def test_a_probe_whose_lane_is_lost_is_followed_by_another(
    redis_client, make_settings, monkeypatch, flag
):
    """G6, G10: a backend is asked again if the lane that asked was another's when it answered."""
    begin_after_a_failure(monkeypatch)
    settings = make_settings(partitions=2, call_timeout=8.0, lease=10.0, **recorded("KeyedSide"))
    lost, kept = spread_sessions(settings, 2)
    lane = Keys(settings.namespace).lane(partition(settings, lost), NAME)
    with MemoryBus.connect(settings) as bus:
        say(bus, lost, f"!hang={flag} x")
        assert bus.flush(timeout=25)
        leave_dead(redis_client, lane, 1, 2)
        with thread_worker(settings):
            wait_until(lambda: calls(home(settings)), "the probe is under way")
            say(bus, kept, "fine")
            assert bus.flush(timeout=25)
            redis_client.hincrby(lane, "epoch")
            flag.unlink()
            wait_until(lambda: "fine" in texts(home(settings)), "others follow")


@pytest.mark.parametrize("kind", ["Keyed", "Transactional"])
def test_a_foreign_field_among_parked_keys_costs_one_lane(
    redis_client, make_settings, caplog, kind
):
    """G10: bytes that are no key stop the lane whose hash they are in, and that is said."""
    settings = make_settings(partitions=2, **recorded(kind))
    foreign, sound = spread_sessions(settings, 2)
    parked = Keys(settings.namespace).parked(partition(settings, foreign), NAME)
    redis_client.hset(parked, b"\xff\xfe", "theirs")
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, foreign, "later")
        say(bus, sound, "fine")
        wait_until(lambda: texts(home(settings)) == ["fine"], "the other lane goes on")
        wait_until(lambda: parked in caplog.text, "it is named")
        redis_client.hdel(parked, b"\xff\xfe")
        wait_applied(redis_client, settings)
