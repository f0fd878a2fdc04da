"""Ctrl-C while an agent reads its memories."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes.interrupts import at_every_instruction
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.concurrency import wakeup
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.recall.cache import WarmCache
from memorybus.redis.connect import connect_redis


def test_an_interrupted_wait_stops_no_sending(make_settings, redis_url):
    """G1, G9: wherever an interrupt ends the wait for a connection, the flusher goes on."""
    settings = make_settings(url=redis_url, prefetch_deadline=0.1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 10)
        cache = WarmCache(settings, SYSTEM, lambda: "unknown")
        for steps in at_every_instruction(wakeup, lambda: cache.read(["slot"])):
            cache._connected.wake_all()
            assert cache._lock.acquire(timeout=1), f"interrupted at instruction {steps}"
            cache._lock.release()
        session.turn_started("after")
        assert bus.flush("logged", 10)


@pytest.fixture
def slots(settings: Settings) -> Iterator[tuple[str, str]]:
    """Return the keys of two slots, "mine" and "other", each of which says whose it is."""
    mine, other = f"{settings.namespace}:mine", f"{settings.namespace}:other"
    with connect_redis(settings) as client:
        client.hset(mine, "whose", "mine")
        client.hset(other, "whose", "other")
        yield mine, other
        client.delete(mine, other)


@pytest.fixture
def cache(settings: Settings) -> Iterator[WarmCache]:
    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: bus.warm._reader, "it is connected")
        yield bus.warm


def test_an_interrupted_read_leaves_no_reply_behind(cache, slots, monkeypatch):
    """G9: the reply that an interrupt left unread is not taken for the next slot's."""
    mine, other = slots

    def interrupted(*_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(cache._reader._redis.connection, "read_response", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache._read_hashes([other], SYSTEM.monotonic() + 5)
    wait_until(lambda: cache._reader, "it is connected anew")
    assert cache._read_hashes([mine], SYSTEM.monotonic() + 5) == [[b"whose", b"mine"]]


def test_a_read_within_a_read_takes_no_reply_of_it(cache, slots, monkeypatch):
    """G9: a signal handler that reads in the middle of a read gets nothing, the reader its own."""
    mine, other = slots
    read = cache._reader._redis.connection.read_response

    def handled() -> Any:
        monkeypatch.undo()
        with pytest.raises(LogUnavailable, match="in the middle of a read"):
            cache._read_hashes([other], SYSTEM.monotonic() + 5)
        return read()

    monkeypatch.setattr(cache._reader._redis.connection, "read_response", handled)
    assert cache._read_hashes([mine], SYSTEM.monotonic() + 5) == [[b"whose", b"mine"]]
    assert cache._read_hashes([other], SYSTEM.monotonic() + 5) == [[b"whose", b"other"]]
