"""How many calls a provider may make: bounded over all workers, and nobody blocks for it."""

import pytest
from helpers.processes.stalls import MARGIN
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.servers import unreachable_client
from helpers.stories.scenario import (
    home,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.errors import Unavailable
from memorybus.health.monitor import read_status
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus_workers.calls import allowance
from memorybus_workers.calls.allowance import SharedSpending

each = pytest.mark.parametrize("kind", ["Keyed", "Lookup", "Blind", "KeyedSide"])


def spoken(settings: Settings, sessions: list[str], count: int) -> None:
    """Publish turns of some sessions."""
    with MemoryBus.connect(settings) as bus:
        for session in sessions:
            say(bus, session, *(f"{session} {number:02d}" for number in range(count)))
        assert bus.flush(timeout=25)


@pytest.mark.parametrize("kind", ["KeyedShared", "Keyed"])
def test_calls_per_second_hold_over_all_workers(redis_client, make_settings, spawn, kind):
    """Two workers together make no more calls than the rate and a second's worth at once allow."""
    settings = make_settings(partitions=4, **recorded(kind, calls_per_second=20))
    spoken(settings, spread_sessions(settings, 4), 15)
    begun = SYSTEM.monotonic()
    for _ in range(2):
        worker(spawn, settings, wait=False)
    wait_applied(redis_client, settings)
    assert SYSTEM.monotonic() - begun >= (60 - 20) / 20 - 0.05


@each
def test_the_days_budget_ends_the_calls_and_nothing_is_parked(
    redis_client, make_settings, kind, monkeypatch
):
    """Once the day's calls are made lanes wait, the status says why; the next day they go on."""
    monkeypatch.setattr(allowance, "ASK_AGAIN", 0.2)
    settings = make_settings(partitions=1, **recorded(kind, daily_budget=3))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        for number in range(5):
            say(bus, f"s{number}", f"turn {number}")
            assert bus.flush(timeout=25)
        wait_until(lambda: len(texts(home(settings))) == 3, "the budget is spent")
        wait_until(
            lambda: "3 calls of this day" in repr(read_status(settings)), "the status says so"
        )
        redis_client.delete(Keys(settings.namespace).budget("rec"))  # as the next day does
        wait_applied(redis_client, settings)
    assert sorted(texts(home(settings))) == [f"turn {number}" for number in range(5)]
    assert not list(DeadLetters(settings).letters(["rec"]))


def test_a_wait_holds_up_no_other_provider(redis_client, make_settings):
    """While one instance waits for its calls, another's lanes go on, and both keep their leases."""
    table = {"kind": "helpers.providers.recording:Keyed"}
    settings = make_settings(
        partitions=1,
        lease=2.0,
        call_timeout=1.0,
        providers=("slow", "quick"),
        provider={"slow": {**table, "daily_budget": 1}, "quick": table},
    )
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one", "two")
        wait_applied(redis_client, settings, "quick")
        until = SYSTEM.monotonic() + settings.lease + MARGIN
        wait_until(lambda: SYSTEM.monotonic() > until, "a lease has run out", 60)
        assert texts(home(settings, "slow")) == ["one"]
        lease = Keys(settings.namespace).lease(0, "slow")
        wait_until(lambda: redis_client.get(lease), "the lane that waits is owned")
        say(bus, "s", "three")
        wait_applied(redis_client, settings, "quick")


def test_the_bucket_fills_with_time(redis_client, make_settings):
    """A second's worth may be called at once; then the wait for the next call is told."""
    keys = Keys(make_settings().namespace)
    call = scripts.spend(keys.budget("p"), 5.0, 0)
    waits = [scripts.run(redis_client, call).seconds for _ in range(6)]
    assert waits[:5] == [0.0] * 5
    assert 0 < waits[5] <= 0.2
    wait_until(lambda: not scripts.run(redis_client, call).seconds, "the next may be made")


def test_a_call_that_is_refused_costs_nothing(redis_client, make_settings):
    """A slow rate lets one call through at once, and asking in vain does not spend the budget."""
    keys = Keys(make_settings().namespace)
    call = scripts.spend(keys.budget("p"), 0.001, 2)
    found = [scripts.run(redis_client, call) for _ in range(5)]
    assert [wait.seconds > 0 for wait in found] == [False, True, True, True, True]
    assert not any(wait.spent_today for wait in found)
    assert redis_client.hget(keys.budget("p"), "spent") == b"1"


def test_what_costs_is_counted_over_all_hosts(redis_client):
    """Two hosts share one account of each sort; none is left where none is allowed."""
    here, there = (SharedSpending(redis_client, Keys("n"), "peers") for _ in range(2))
    taken = [here("questions", 3), there("questions", 3), here("questions", 3)]
    assert taken == [True, True, True]
    assert not there("questions", 3)
    assert there("drawings", 3)
    assert not here("questions", 0)


def test_what_may_be_spent_is_unknown_without_redis():
    """Nothing that costs is done on a guess."""
    with pytest.raises(Unavailable, match="peers"):
        SharedSpending(unreachable_client(), Keys("n"), "peers")("questions", 3)
