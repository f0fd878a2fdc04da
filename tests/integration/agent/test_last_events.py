"""What an agent publishes in its last moment: a clean end sends what Redis takes at once."""

from collections.abc import Callable

import pytest
from helpers.processes.ending import LAST, WAYS
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ, log_length
from helpers.stories.spools import left_unsent
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings

AT_ONCE = 4
"""Agents that end beside each other, so that each ends on a busy machine. Python gives each of them
2 s, of which a Redis that answers needs milliseconds."""

WAIT_SECONDS = 25.0
CLOSE_SECONDS = 1.0


def begun(settings: Settings) -> tuple[MemoryBus, Session]:
    """Return a bus, and a session whose beginning is in the log."""
    bus = MemoryBus.connect(settings)
    session = bus.session("s", warm=False)
    assert bus.flush("logged", WAIT_SECONDS)
    return bus, session


def clocked(act: Callable[[], bool]) -> tuple[bool, float]:
    """Do something; return what it returns, and its seconds, standstills included."""
    begun = SYSTEM.monotonic()
    return act(), SYSTEM.monotonic() - begun


@pytest.mark.parametrize("way", WAYS)
def test_a_clean_end_leaves_nothing_unsent(way, make_settings, private_redis, spawn):
    """G1: however an agent ends by itself, its last events are in Redis when it is gone."""
    base = make_settings(url=private_redis.url)
    places = [  # of its own each, or one would send what another left
        make_settings(
            url=private_redis.url,
            data_dir=base.data_dir / f"{number}",
            namespace=f"{base.namespace}{number}",
        )
        for number in range(AT_ONCE)
    ]
    agents = [spawn("-m", "helpers.processes.ending", way, env=environ(place)) for place in places]
    for child in agents:
        assert child.wait() == 0, child.output()
        assert "Traceback" not in child.output()
    assert [left_unsent(place) for place in places] == [0] * AT_ONCE
    client = private_redis.client()
    assert [log_length(client, place) for place in places] == [1 + LAST] * AT_ONCE


def test_an_idle_connection_that_was_closed_is_made_again(private_redis, make_settings):
    """G1: the connection was closed from afar while nobody spoke: the end makes another."""
    bus, session = begun(make_settings(url=private_redis.url))
    private_redis.client().client_kill_filter(_type="normal", skipme=True)
    session.ended()
    bus.close(WAIT_SECONDS)
    assert log_length(private_redis.client(), bus.settings) == 2


def test_a_redis_that_is_back_gets_the_last_events(private_redis, make_settings):
    """G1: Redis was away for so long that it is tried rarely: the end tries it once more."""
    bus, session = begun(make_settings(url=private_redis.url))
    private_redis.kill()
    session.ended()
    flusher = bus.publisher.flusher
    wait_until(lambda: flusher._attempts.in_a_row >= 8, "the next try is seconds away", 60)
    private_redis.start()
    bus.close(WAIT_SECONDS)
    assert log_length(private_redis.client(), bus.settings) == 2


def test_a_redis_that_hangs_is_waited_for_once(private_redis, make_settings, witness):
    """G9: many who hurry, one after another, wait together as long as one, until Redis goes on."""
    bus, session = begun(make_settings(url=private_redis.url))
    private_redis.freeze()
    session.turn_completed("a", "b")
    (sent, waited), took = witness.timed(lambda: clocked(lambda: bus.hurry(CLOSE_SECONDS)))
    assert not sent
    assert waited > CLOSE_SECONDS - 0.1
    assert took < CLOSE_SECONDS + MARGIN
    _, took = witness.timed(lambda: [bus.hurry(CLOSE_SECONDS) for _ in range(10)])
    assert took < MARGIN
    (_, waited), took = witness.timed(lambda: clocked(lambda: bus.hurry(2 * CLOSE_SECONDS)))
    assert waited > CLOSE_SECONDS - 0.1
    assert took < CLOSE_SECONDS + MARGIN, "what another has waited counts"
    private_redis.thaw()
    wait_until(lambda: bus.unsent == 0, "Redis takes it")
    session.ended()
    assert bus.hurry(WAIT_SECONDS)
    bus.close()


def test_a_dead_redis_is_not_waited_for(private_redis, make_settings, witness):
    """G9: nobody listens: the end is told so at once, and the events stay in the spool."""
    bus, session = begun(make_settings(url=private_redis.url))
    private_redis.kill()
    session.ended()
    sent, took = witness.timed(lambda: bus.hurry(WAIT_SECONDS))
    assert not sent
    assert took < CLOSE_SECONDS + MARGIN
    _, took = witness.timed(lambda: bus.close(WAIT_SECONDS))
    assert took < CLOSE_SECONDS + MARGIN
    private_redis.start()
    assert left_unsent(bus.settings) >= 1  # and what Redis lost with its last second
