"""SIGKILL and SIGSTOP for Redis under load (G1, G3, G9)."""

from collections import Counter

import pytest
from helpers.faults.scale import QUICK, times
from helpers.processes.processes import Child, Spawn
from helpers.processes.stalls import Witness
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    agent,
    home,
    log_length,
    numbers,
    recorded,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings

AGENTS = 3
TURNS = times(20_000)
DEATHS = times(10)


def busy_agents(spawn: Spawn, settings: Settings, count: int, turns: int) -> list[Child]:
    """Start agents that publish without a pause, then wait for the log."""
    return [
        agent(spawn, settings, "--session", f"s{n}", "--count", turns, "--flush", 90)
        for n in range(count)
    ]


def assert_all_applied_once(settings: Settings, children: list[Child], turns: int) -> None:
    """Fail unless each agent's turns are all applied, once, in order."""
    for child in children:
        assert child.wait(90) == 0, child.output()
        assert "\nflushed" in child.output(), child.output()[-300:]
        assert numbers(child.output()) == list(range(turns))
    found = texts(home(settings))
    assert len(found) == len(children) * turns
    for number in range(turns):
        assert found.count(f"turn {number:05d}") == len(children)


@pytest.mark.timeout(240)
def test_redis_is_killed_under_load(private_redis, make_settings, spawn):
    """G1, G3: Redis is killed while events flow: nothing is lost, nothing applied twice."""
    settings = make_settings(url=private_redis.url, spool_keep=60.0, **recorded("Transactional"))
    with thread_worker(settings):
        children = busy_agents(spawn, settings, 2, 1_500)
        for _ in range(2):
            seen = len(texts(home(settings)))
            wait_until(lambda seen=seen: len(texts(home(settings))) > seen, "events flow", 45)
            private_redis.restart()
        wait_until(lambda: len(texts(home(settings))) >= 3_000, "all are applied", 90)
        assert_all_applied_once(settings, children, 1_500)


@pytest.mark.timeout(180)
def test_redis_is_frozen_for_a_while(private_redis, make_settings, spawn, tmp_path):
    """G9: while Redis hangs over a lease's time, publishing is quick; then all is applied once."""
    settings = make_settings(
        url=private_redis.url, lease=1.0, call_timeout=0.5, **recorded("Transactional")
    )
    witness = Witness(spawn, tmp_path)
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        _publish(session, 0, 50)
        wait_until(lambda: len(texts(home(settings))) == 50, "applied before")
        private_redis.freeze()
        until = SYSTEM.monotonic() + 3.0
        begin, began_ms = SYSTEM.monotonic(), SYSTEM.now_ms()
        _publish(session, 50, 50)
        took = SYSTEM.monotonic() - begin
        wait_until(lambda: SYSTEM.monotonic() > until, "it has hung for three seconds")
        # What the machine itself took, standing still, is noted by now.
        assert took - witness.stood(range(began_ms, began_ms + round(1_000 * took))) < 0.5
        private_redis.thaw()
        assert bus.flush("logged", 45), bus.problem
        wait_until(lambda: len(texts(home(settings))) == 100, "applied after", 45)
    assert texts(home(settings)) == [f"turn {number}" for number in range(100)]


@pytest.mark.timeout(180)
def test_redis_is_killed_while_a_worker_commits(private_redis, make_settings):
    """G4: after a restart of Redis a lane without a store goes on at the checkpoint."""
    settings = make_settings(url=private_redis.url, batch=5, **recorded("Keyed"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for first in range(0, 150, 50):
            _publish(session, first, 50)
            private_redis.restart()
        assert bus.flush("logged", 45), bus.problem
        wait_until(lambda: len(texts(home(settings))) == 150, "all are applied", 45)
    assert texts(home(settings)) == [f"turn {number}" for number in range(150)]


def _publish(session: Session, first: int, count: int) -> None:
    for number in range(first, first + count):
        session.turn_completed(f"turn {number}", "ok", ordinal=number)


@pytest.mark.fault
@pytest.mark.skipif(QUICK, reason="60,000 events: part of the whole suite only")
@pytest.mark.timeout(400)
def test_everything_dies_in_turn(private_redis, make_settings, spawn, report):
    """G1 to G5: Redis and workers die again and again under load, and the books balance."""
    settings = make_settings(
        url=private_redis.url,
        lease=1.0,
        call_timeout=0.5,
        spool_keep=120.0,
        **recorded("Transactional"),
    )
    children = busy_agents(spawn, settings, AGENTS, TURNS)
    present = worker(spawn, settings, wait=False)
    for number in range(DEATHS):
        seen = len(texts(home(settings)))
        wait_until(lambda seen=seen: len(texts(home(settings))) > seen, "events flow", 60)
        if number % 2:
            present.kill()
            present = worker(spawn, settings, wait=False)
        else:
            private_redis.restart()
    for child in children:
        child.wait(120)
    wait_until(lambda: len(texts(home(settings))) >= AGENTS * TURNS, "all are applied", 120)
    wait_applied(private_redis.client(), settings, timeout=60)
    found = Counter(texts(home(settings)))
    known = [found[f"turn {number:05d}"] for number in range(TURNS)]
    report(
        faults=DEATHS,
        events=AGENTS * TURNS,
        lost=sum(max(0, AGENTS - count) for count in known),
        twice=sum(max(0, count - AGENTS) for count in known),
    )
    assert_all_applied_once(settings, children, TURNS)
    assert log_length(private_redis.client(), settings) == AGENTS * (TURNS + 1)
