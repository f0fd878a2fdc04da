"""Calls that return after they were abandoned, or at the very moment."""

import threading
from typing import Any

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import (
    NAME,
    home,
    partition,
    recorded,
    say,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import LeaseLost
from memorybus.redis.keys import Keys
from memorybus_workers.calls.breaker import Breaker
from memorybus_workers.calls.thread_activity import ThreadActivity
from memorybus_workers.hosting.host import ProviderHost
from memorybus_workers.lanes.leases import Lease, Leases


def doubt(client: redis.Redis, settings: Settings, session: str) -> None:
    """Let a former owner have sent a session's events, perhaps."""
    client.hset(Keys(settings.namespace).lane(partition(settings, session), NAME), "sent", 100)


@pytest.mark.parametrize("kind", ["LateLookup", "LateLookupSide"])
def test_a_late_no_is_not_acted_upon(redis_client, make_settings, flag, kind):
    """G4, G5: who asks a backend and is abandoned meanwhile sends nothing when the answer comes."""
    timings = {"lease": 10.0, "call_timeout": 2.0}
    settings = make_settings(attempts=100, **timings, **recorded(kind, late=str(flag)))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one", "two")
        assert bus.flush()
        doubt(redis_client, settings, "s")
        with thread_worker(settings) as running:
            wait_until(lambda: texts(home(settings)) == ["one", "two"], "another applied them")
            (host,) = running._hosts.all
            assert host._hung
            flag.unlink()
            wait_until(lambda: not host._hung, "the abandoned call is over")
    assert texts(home(settings)) == ["one", "two"]


def test_a_call_that_returns_while_it_is_abandoned_keeps_the_leases(
    redis_client, make_settings, monkeypatch, flag, tmp_path
):
    """G4, G5: a thread that went on with the next call is waited for: nobody else may make it."""
    settings = make_settings(partitions=1, call_timeout=1.0, lease=8.0, **recorded("Lookup"))
    second, released = tmp_path / "second", list[Lease]()
    second.touch()
    failed, release, replace = Breaker.note_failure, Leases.release, ProviderHost._replace
    replaced = threading.Event()

    def failed_late(self: Breaker, now: float, why: str = "") -> float:
        if flag.exists():
            flag.unlink()
            wait_until(lambda: "two" in calls(home(settings))[-1], "its thread has gone on")
        return failed(self, now, why)

    def note(self: Leases, redis: redis.Redis, leases: list[Lease]) -> None:
        released.extend(leases)
        release(self, redis, leases)

    def replace_and_tell(self: ProviderHost, what: str, redis: redis.Redis) -> None:
        replace(self, what, redis)
        replaced.set()

    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        monkeypatch.setattr(ProviderHost, "_replace", replace_and_tell)
        monkeypatch.setattr(Breaker, "note_failure", failed_late)
        monkeypatch.setattr(Leases, "release", note)
        say(bus, "s", f"!hang={flag} one", f"!hang={second} two")
        assert replaced.wait(30)
        assert not released
        second.unlink()
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == [f"!hang={flag} one", f"!hang={second} two"]


def test_who_was_abandoned_does_not_go_on():
    """G5: a second call for an event follows the first, unless that took too long for its watch."""

    class Time:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    time: Any = Time()
    activity = ThreadActivity(time)
    activity.begin("e")
    assert not activity.abandon(1.0)
    activity.begin_next("e")
    time.now = 2.0
    assert activity.hanging_call(1.0) == "e"
    activity.begin_next("e")  # it returned before the watch came by: its time begins anew
    assert not activity.abandon(1.0)
    time.now = 4.0
    assert activity.abandon(1.0)
    with pytest.raises(LeaseLost, match="abandoned"):
        activity.begin_next("e")
