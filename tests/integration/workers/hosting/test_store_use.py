"""A local store and the logs whose workers use it."""

import random

import pytest
from helpers.processes.contexts import instance_context
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import NAME, home, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.errors import Unavailable
from memorybus.health.monitor import read_status
from memorybus.testing import FakeClock
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.hosting.runner import Runner, StoreUse


def test_workers_of_one_log_share_a_store(tmp_path):
    """Several processes may hold the same store for the same log."""
    first, second = StoreUse(tmp_path, "log"), StoreUse(tmp_path, "log")
    first.close()
    second.close()


def test_workers_of_another_log_are_kept_out(tmp_path):
    """G4: a store that workers of one log use is refused to those of another, until they end."""
    first = StoreUse(tmp_path, "log")
    with pytest.raises(Unavailable, match="another log"):
        StoreUse(tmp_path, "other")
    first.close()
    StoreUse(tmp_path, "other").close()


def test_two_logs_do_not_write_to_one_store(redis_client, make_settings):
    """G4: the second log's worker says why it waits, and goes on once the first's has ended."""
    table = {"providers": (NAME,), "provider": {NAME: {"kind": "helpers.providers.local:Local"}}}
    one, other = make_settings(**table), make_settings(namespace="another", **table)
    for settings, text in ((one, "of one"), (other, "of another")):
        with MemoryBus.connect(settings) as bus:
            bus.session("s", warm=False).turn_completed(text, "ok")
            assert bus.flush(timeout=25)
    with thread_worker(one):
        wait_applied(redis_client, one)
        with thread_worker(other):
            wait_until(
                lambda: "another log" in read_status(other).providers[0].failing, "it says why"
            )
            assert texts(home(one)) == ["of one"]
    with thread_worker(other):
        wait_applied(redis_client, other)
    assert texts(home(one)) == ["of one", "of another"]


def test_a_store_is_left_by_a_provider_that_can_neither_open_nor_shut_down(
    make_settings, redis_url
):
    """G10: each try to open it takes the store anew: none of them may hold it for ever."""
    kind = "helpers.providers.local:NeverOpened"
    settings = make_settings(url=redis_url, providers=(NAME,), provider={NAME: {"kind": kind}})
    log, clock, rng = settings.log_name, FakeClock(), random.Random(0)
    context = instance_context(settings, NAME, clock)
    runner = Runner(context, FailingEvents(clock, rng, 1), Breaker(rng))
    with pytest.raises(AttributeError, match="db"):
        runner._serve()
    assert (home(settings) / f"used-by-{log}").exists(), "it was taken"
    StoreUse(home(settings), "another log").close()
