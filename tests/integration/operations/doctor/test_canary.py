"""The doctor's canary: an event that lanes pass, and of which no backend hears."""

import pytest
from helpers.providers.recording import texts
from helpers.stories.published import envelopes
from helpers.stories.scenario import NAME, home, recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.events import CanarySent
from memorybus.health.monitor import read_status
from memorybus_console.operations.doctor import instances


@pytest.mark.parametrize("kind", ["Transactional", "Keyed", "Lookup", "Blind"])
def test_a_canary_passes_and_no_backend_hears_of_it(redis_client, make_settings, kind):
    """G3: one event, which every class of provider's lane commits, without a call or a session."""
    settings = make_settings(**recorded(kind))
    with thread_worker(settings):
        assert instances.send_and_await(settings, SYSTEM, "w1").ok
        (one,) = read_status(settings).providers
    assert (one.applied, one.backlog, one.dead_letters) == (1, 0, 0)
    assert [type(envelope.event) for envelope in envelopes(settings)] == [CanarySent]
    assert texts(home(settings)) == []
    assert read_status(settings).canary_at


def test_a_lane_that_does_not_pass_it_is_named(redis_client, make_settings, monkeypatch):
    """G10: without a worker the canary is in the log and stays there; success is not noted."""
    monkeypatch.setattr(instances, "PASSED_WITHIN", 0.2)
    settings = make_settings(**recorded("Blind"))
    found = instances.send_and_await(settings, SYSTEM, "w1")
    assert not found.ok
    assert found.found.endswith(f"by: {NAME}")
    assert read_status(settings).canary_at is None


def test_parked_keys_hold_up_no_canary(redis_client, make_settings):
    """G6: keys that wait for an operator hold up no canary."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "!permanent", "behind")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
        assert instances.send_and_await(settings, SYSTEM, "w1").ok


def test_a_redis_that_takes_nothing_is_told_apart(redis_client, make_settings, monkeypatch):
    """G9: what waits in the spool is not what waits in a lane."""
    monkeypatch.setattr(MemoryBus, "flush", lambda *_, **__: False)
    found = instances.send_and_await(make_settings(**recorded("Blind")), SYSTEM, "w1")
    assert not found.ok
    assert "waits in the spool" in found.found
