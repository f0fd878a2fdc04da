"""Lanes of an instance that takes a part of the history: what is left out costs nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from helpers.archive.sealed_log import QUICK
from helpers.processes.contexts import instance_context, open_instance
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, home, recorded, say
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.history.history import History
from memorybus.query.query import Query
from memorybus.query.ranges import NumberRange, Plan
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.testing import FakeClock
from memorybus_workers.archiving.archiver import run_once
from memorybus_workers.hosting.instances import make_instance
from memorybus_workers.hosting.lane_set import LaneSet
from memorybus_workers.lanes import lane

KINDS = ("Transactional", "Keyed", "Lookup", "Recording", "KeyedSide")
OURS: Any = QUICK | {"lease": 1e6}
"""Nobody renews the leases here: they are to last for the whole test, however slow it is."""


@contextmanager
def lanes_of(
    settings: Settings, plan: Plan, clock: FakeClock | None = None
) -> Iterator[Callable[[int], None]]:
    """Own all lanes of an instance with a plan; yield what gives them some turns."""
    context = instance_context(settings, NAME, clock or SYSTEM, plan=plan)
    provider = make_instance(settings, NAME, SYSTEM)
    provider.open()
    instance = open_instance(context, provider)
    lanes = LaneSet(instance, threading.Event(), lambda: None)
    lanes.balance(range(settings.partitions))

    def turns(count: int) -> None:
        for _ in range(count):
            lanes.look_at_all()
            lanes.step(set())

    try:
        yield turns
    finally:
        lanes.leave()
        provider.shutdown()


def filled(settings: Settings, *, upto: int = 60) -> None:
    """Publish turns of two people's sessions, by turns, and seal most of them."""
    with MemoryBus.connect(settings) as bus:
        for number in range(upto):
            say(bus, ("ann", "bob")[number % 2], f"turn {number:03d}")
            if number in (10, upto - 10):
                assert bus.flush("logged", 10)
                run_once(settings)
        assert bus.flush("logged", 10)


def done(settings: Settings) -> list[int]:
    """Return the lanes' checkpoints."""
    client, keys = connect_redis(settings), Keys(settings.namespace)
    found = [client.hget(keys.lane(p, NAME), "n") for p in range(settings.partitions)]
    client.close()
    return [int(n or 0) for n in found]


@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_gets_what_its_query_takes(redis_client, make_settings, kind):
    """G3, G8: from archive and log alike only what is wanted is applied, and all of it counts."""
    settings = make_settings(**OURS, batch=7, window=20, **recorded(kind))
    filled(settings)
    plan = Plan(query=Query(sessions=("bob",)))
    with lanes_of(settings, plan) as turns:
        wait_until(lambda: turns(5) or len(texts(home(settings))) == 30, "bob's turns are applied")
        turns(20)
        assert sorted(texts(home(settings))) == [f"turn {n:03d}" for n in range(1, 60, 2)]
    history = History.from_settings(redis_client, settings)
    assert done(settings) == [head.n for head in history.log.heads()]
    history.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leap", [2, 10_000])
def test_an_instance_stops_where_its_plan_ends(
    redis_client, make_settings, monkeypatch, kind, leap
):
    """G8: nothing behind the last span is read, nothing between spans is applied."""
    monkeypatch.setattr(lane, "MIN_LEAP", leap)
    settings = make_settings(**OURS, batch=7, window=20, **recorded(kind))
    filled(settings)
    plan = Plan(spans={0: (NumberRange(4, 6), NumberRange(20, 25)), 1: ()})
    with lanes_of(settings, plan) as turns:
        wait_until(lambda: turns(5) or done(settings) == [25, 0], "the lanes are at their ends")
        turns(20)
    history = History.from_settings(redis_client, settings)
    page = [e for n in (3, 19) for e in _after(history, n)]
    wanted = [e.envelope.event.user for e in page if plan.takes(0, e.position.n)]
    history.close()
    assert texts(home(settings)) == wanted
    assert len(wanted) == 9
    assert done(settings) == [25, 0]


def _after(history: History, n: int) -> list:
    place = history.place(0, n)
    assert place is not None
    return history.read(0, place.entry, 6, after_n=n).events


def test_a_rate_bounds_what_is_applied(redis_client, make_settings, fake_clock):
    """G10: an instance with a rate takes no more than that in a second, over all its lanes."""
    settings = make_settings(**OURS, **recorded("Keyed"))
    filled(settings)
    with lanes_of(settings, Plan(rate=4.0), fake_clock) as turns:
        for second in range(5):
            fake_clock.advance(1.0)
            turns(10)
            applied = len(texts(home(settings)))  # two sessions' beginnings count, too
            assert second * 4 - 1 <= applied <= second * 4 + 1
