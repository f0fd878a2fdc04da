"""Lanes between workers: one owner, takeover, a frozen owner that wakes."""

from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, effects, texts
from helpers.stories.scenario import (
    home,
    partition,
    recorded,
    say,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.redis.keys import Keys


def owners(client: redis.Redis, settings: Settings) -> list[str]:
    """Return the owner of every lane, "" for none."""
    keys = Keys(settings.namespace)
    names = [keys.lease(p, "rec") for p in range(settings.partitions)]
    found: Any = client.mget(names)
    return [(raw or b":").decode().split(":", 1)[1] for raw in found]


def test_lanes_have_one_owner(redis_client, make_settings):
    """G5: of two workers one owns a lane; when it ends the other takes over and goes on."""
    settings = make_settings(lease=30.0, **recorded("Transactional"))
    with (
        MemoryBus.connect(settings) as bus,
        thread_worker(settings) as first,
        thread_worker(light(settings)) as second,  # no lane moves to it while the first lives
    ):
        assert set(owners(redis_client, settings)) == {first.id}
        say(bus, "s", "one", "two")
        wait_until(lambda: len(texts(home(settings))) == 2, "applied by the first")
        assert len(read_status(settings).workers) == 2
        first.stop()
        wait_until(
            lambda: set(owners(redis_client, settings)) == {second.id},
            "the second owns all lanes without waiting for a lease to end",
            settings.lease - 10,
        )
        say(bus, "s", "three")
        wait_until(lambda: len(texts(home(settings))) == 3, "applied by the second")
    assert texts(home(settings)) == ["one", "two", "three"]
    assert owners(redis_client, settings) == [""] * settings.partitions


def test_a_killed_workers_lanes_are_taken_over(redis_client, make_settings, spawn):
    """G5: lanes of a killed worker go to another once their leases have ended."""
    settings = make_settings(lease=1.0, call_timeout=0.5, **recorded("Transactional"))
    first = worker(spawn, settings)
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as second:
        say(bus, "s", "one")
        wait_until(lambda: texts(home(settings)) == ["one"], "applied by the first")
        first.kill()
        say(bus, "s", "two")
        wait_until(lambda: texts(home(settings)) == ["one", "two"], "applied by the second")
        wait_until(lambda: set(owners(redis_client, settings)) == {second.id}, "all are taken")


@pytest.mark.parametrize(
    ("kind", "doubled"), [("Transactional", 0), ("Keyed", 0), ("Lookup", 0), ("Blind", 1)]
)
def test_a_frozen_owner_that_wakes_changes_nothing(
    redis_client, make_settings, spawn, kind, doubled
):
    """G5: a worker frozen over its lease, woken after a takeover, adds no effect of its own.

    At most the one call that was under way repeats, where the backend cannot tell (G4, ``blind``).
    """
    settings = make_settings(lease=30.0, call_timeout=20.0, **recorded(kind))
    keys = Keys(settings.namespace)
    # Only who is frozen has a short lease, and that one outlasts a moment of a slow machine.
    first = worker(spawn, msgspec.structs.replace(light(settings), lease=3.0, call_timeout=2.5))
    place = partition(settings, "s")
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", *[f"early {number}" for number in range(10)])
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
        first.freeze()
        say(bus, "s", *[f"late {number}" for number in range(200)])
        assert bus.flush(timeout=25)
        with thread_worker(settings):
            wait_applied(redis_client, settings)
            epoch = redis_client.hget(keys.lane(place, "rec"), "epoch")
            first.thaw()
            say(bus, "s", "last")
            wait_until(lambda: "last" in texts(home(settings)), "the new owner goes on")
            wait_until(lambda: knows_its_loss(first.pid, settings), "the first knows its loss")
            assert redis_client.hget(keys.lane(place, "rec"), "epoch") == epoch
            found, by_first = effects(home(settings)), calls(home(settings), first.pid)
    late = [effect.text for effect in found if effect.text.startswith("late")]
    assert len(late) - 200 <= doubled
    assert list(dict.fromkeys(late)) == [f"late {number}" for number in range(200)]
    assert [w for w in by_first if w != "knows"] == [f"early {n}" for n in range(10)]
    assert found[-1].text == "last"


def light(settings: Settings) -> Settings:
    """Return the settings of a worker that gets no lane while another lives."""
    return msgspec.structs.replace(settings, capacity=0.001)


def knows_its_loss(pid: int, settings: Settings) -> bool:
    """Say whether a worker has shown, since it woke, that it owns nothing any more."""
    return any(one.pid == pid and one.lanes == 0 for one in read_status(settings).workers)


def test_a_frozen_owner_wakes_inside_a_batch(redis_client, make_settings, spawn, tmp_path):
    """G5: an owner that wakes in the midst of a batch makes no further call after a takeover."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(lease=4.0, call_timeout=3.8, attempts=50, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", f"!hang={flag} slow", *[f"late {number}" for number in range(50)])
        assert bus.flush(timeout=25)
        first = worker(spawn, light(settings))
        wait_until(lambda: calls(home(settings), first.pid), "the first is in a call")
        first.freeze()
        flag.unlink()
        with thread_worker(settings):
            wait_applied(redis_client, settings)
            first.thaw()
            wait_until(lambda: knows_its_loss(first.pid, settings), "the first knows its loss")
            by_first = calls(home(settings), first.pid)
    assert by_first == [f"!hang={flag} slow"]
    assert texts(home(settings))[1:] == [f"late {number}" for number in range(50)]


def test_a_lane_goes_on_where_it_was(redis_client, make_settings):
    """G3: a new worker reads from the checkpoint and calls nothing twice."""
    settings = make_settings(**recorded("Blind"))
    with MemoryBus.connect(settings) as bus:
        for round_ in range(3):
            with thread_worker(settings):
                say(bus, "s", f"round {round_}")
                assert bus.flush(timeout=25)
                wait_applied(redis_client, settings)
    assert calls(home(settings)) == [f"round {number}" for number in range(3)]


def test_a_fresh_store_gets_everything_again(redis_client, make_settings):
    """G8: a transactional store that was emptied is filled from the beginning of the log."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        with thread_worker(settings):
            say(bus, "s", "one", "two")
            assert bus.flush(timeout=25)
            wait_applied(redis_client, settings)
        for path in home(settings).glob("effects.db*"):
            path.unlink()
        with thread_worker(settings):
            wait_until(lambda: len(texts(home(settings))) == 2, "filled again")
    assert texts(home(settings)) == ["one", "two"]


def test_progress_is_a_consumer_groups(redis_client, make_settings):
    """G3: each lane's progress shows as a consumer group of the provider's name."""
    settings = make_settings(**recorded("Keyed"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
    log = keys.log(partition(settings, "s"))
    (group,) = redis_client.xinfo_groups(log)
    last: Any = redis_client.xrevrange(log, count=1)
    assert (group["name"], group["last-delivered-id"]) == (b"rec", last[0][0])


def test_two_workers_and_two_providers(redis_client, make_settings):
    """G5: workers that serve different providers share the log and never each other's lanes."""
    tables = {
        "one": {"kind": "helpers.providers.recording:Keyed"},
        "two": {"kind": "helpers.providers.recording:Transactional"},
    }
    settings = make_settings(providers=("one", "two"), provider=tables)
    with (
        MemoryBus.connect(settings) as bus,
        thread_worker(settings, ("one",)) as first,
        thread_worker(settings, ("two",)) as second,
    ):
        say(bus, "s", "hello")
        assert bus.flush(timeout=25)
        for name in ("one", "two"):
            wait_applied(redis_client, settings, name)
        workers = {w.id: w.lanes for w in read_status(settings).workers}
        assert workers.keys() == {first.id, second.id}
    for name in ("one", "two"):
        assert texts(home(settings, name)) == ["hello"]
