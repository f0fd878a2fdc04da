"""The first reads of warm results, before the process has a connection."""

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from memorybus.agent.client import MemoryBus


def test_a_healthy_start_counts_no_failure(settings, monkeypatch):
    """G9: a prefetch before the first connection is made is no failure."""
    monkeypatch.setattr("memorybus.outbox.flusher.Flusher._connect", lambda self: 1 / 0)
    monkeypatch.setattr("memorybus.outbox.flusher.Flusher._back_off", lambda self, error: None)
    with MemoryBus.connect(settings) as bus:
        assert bus.session("s", warm=False).prefetch("what was it") == ""
        assert bus.counters.prefetch_failures == 0
        assert bus.counters.prefetch_failed == {}


def test_a_redis_that_is_away_counts(make_settings):
    """G9: a prefetch while Redis is known to be away is counted."""
    settings = make_settings(url=f"redis://127.0.0.1:{free_ports(1)[0]}")
    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: bus.problem, "Redis is known to be away")
        session = bus.session("s", warm=False)
        session.prefetch("what was it")
        session.prefetch("what was it then")
        assert bus.counters.prefetch_failures == bus.counters.prefetch_failed["redis"] == 2
