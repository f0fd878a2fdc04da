"""Keys side by side: order, the done-set, and what a failing key may cost the others."""

from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import CLOSED, calls, effects, texts
from helpers.stories.scenario import (
    NAME,
    PATIENT,
    backlog,
    environ,
    home,
    neighbour_sessions,
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
from memorybus.registry.lanes import decode_done_above

both = pytest.mark.parametrize("kind", ["KeyedSide", "LookupSide"])


def lane(client: Any, settings: Settings, session: str) -> dict[bytes, bytes]:
    """Return the hash of a session's lane."""
    found: dict[bytes, bytes] = client.hgetall(
        Keys(settings.namespace).lane(partition(settings, session), "rec")
    )
    return found


def left_open(client: Any, settings: Settings, session: str) -> int:
    """Count the events of a session's lane that its checkpoint and done-set do not hold."""
    found = lane(client, settings, session)
    n = int(found.get(b"n", 0))
    head = client.hget(Keys(settings.namespace).state(partition(settings, session)), "n")
    return int(head) - n - decode_done_above(found.get(b"done", b""), n).bit_count()


def let_leases_end(client: Any, settings: Settings) -> None:
    """End the leases of a worker that was killed, as time would."""
    keys = Keys(settings.namespace)
    client.delete(*(keys.lease(place, NAME) for place in range(settings.partitions)))


@both
def test_keys_of_one_lane_run_side_by_side(redis_client, make_settings, tmp_path, kind):
    """Two calls of one lane are under way at once: each waits for the other."""
    settings = make_settings(call_timeout=1.5, **recorded(kind))
    one, other = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, one, f"!meet={tmp_path / 'place'} one")
        say(bus, other, f"!meet={tmp_path / 'place'} other")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
    assert len(texts(home(settings))) == 2


@both
def test_each_key_keeps_its_order(redis_client, make_settings, kind):
    """G3: with many calls at once, the events of a key are applied one after another, in order."""
    settings = make_settings(window=200, batch=50, **recorded(kind))
    names = [f"s{number}" for number in range(20)]
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        for number in range(40):
            for name in names:
                say(bus, name, f"{name} {number:02d}")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
    found = texts(home(settings))
    for name in names:
        assert [t for t in found if t.startswith(f"{name} ")] == [
            f"{name} {number:02d}" for number in range(40)
        ]


@both
def test_a_failing_key_holds_up_nothing_but_itself(redis_client, make_settings, tmp_path, kind):
    """G3, G6: while a key is tried again and again, others of its lane go on; then it does too."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=1_000, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, f"!transient={flag} first", "second")
        say(bus, good, *[f"fine {number}" for number in range(30)])
        assert bus.flush(timeout=25)
        wait_until(lambda: len(texts(home(settings))) == 30, "the other key is through")
        wait_until(
            lambda: lane(redis_client, settings, bad).get(b"done"), "the done-set is committed"
        )
        flag.unlink()
        wait_applied(redis_client, settings, timeout=40)
        wait_until(lambda: b"done" not in lane(redis_client, settings, bad), "nothing is open")
    assert texts(home(settings))[30:] == [f"!transient={flag} first", "second"]


@pytest.mark.parametrize("kind", ["KeyedSide", "LookupSide", "Keyed", "Transactional"])
def test_a_busy_session_does_not_keep_others_waiting(redis_client, make_settings, tmp_path, kind):
    """G3, G6: however long the queue of a failing key, others of its lane go on; then it does."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=1_000, window=64, batch=50, **recorded(kind))
    busy, other = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        say(bus, busy, f"!transient={flag} first", *[f"more {n:03d}" for n in range(400)])
        say(bus, other, "fine")
        say(bus, busy, *[f"more {n:03d}" for n in range(400, 420)])
        say(bus, other, "still fine")
        assert bus.flush(timeout=25)
        with thread_worker(settings):
            wait_until(lambda: texts(home(settings)) == ["fine", "still fine"], "others go on")
            flag.unlink()
            wait_applied(redis_client, settings)
    assert texts(home(settings))[3:] == [f"more {n:03d}" for n in range(420)]


@both
def test_a_crash_repeats_only_what_was_not_done(redis_client, make_settings, spawn, tmp_path, kind):
    """G4: the next owner calls nothing that the done-set holds."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=1_000, **PATIENT, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        say(bus, bad, f"!transient={flag} first")
        say(bus, good, *[f"fine {number}" for number in range(30)])
        assert bus.flush(timeout=25)
    first = worker(spawn, settings)
    wait_until(lambda: len(texts(home(settings))) == 30, "the other key is through")
    wait_until(lambda: left_open(redis_client, settings, bad) == 1, "all of it is committed")
    first.kill()
    let_leases_end(redis_client, settings)
    flag.unlink()
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    fine = [what for what in calls(home(settings)) if what.startswith("fine")]
    assert len(fine) == 30
    assert len(effects(home(settings))) == 31


def test_only_what_may_have_been_sent_is_asked_for(redis_client, make_settings, spawn):
    """G4, ``lookup``: after a crash the backend is asked for events in doubt, and for no others."""
    settings = make_settings(window=8, batch=8, partitions=1, **PATIENT, **recorded("LookupSide"))
    with MemoryBus.connect(settings) as bus:
        for number in range(40):
            say(bus, f"s{number}", f"turn {number}")
        assert bus.flush(timeout=25)
    first = spawn(
        *("-m", "memorybus_workers", "worker", "--jobs", "0"),
        env=environ(settings) | {"MEMORYBUS_CRASH_AT": "recording.after_effect:11"},
    )
    assert first.wait() == -9, first.output()
    let_leases_end(redis_client, settings)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    found = [effect.event_id for effect in effects(home(settings))]
    assert len(found) == len(set(found)) == 40
    asked = calls(home(settings)).count("knows")
    assert 1 <= asked <= 9


def test_a_hanging_call_is_replaced_alone(redis_client, make_settings, tmp_path):
    """G6, G9: one call hangs: its thread is replaced, its event parked; the others never wait."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=2, call_timeout=1.5, **recorded("KeyedSide"))
    bad, *good = neighbour_sessions(settings, 6)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, f"!hang={flag} for ever", "behind")
        wait_until(lambda: calls(home(settings)), "it hangs")
        for number in range(20):
            for name in good:
                say(bus, name, f"{name} {number}")
        assert bus.flush(timeout=25)
        wait_until(lambda: len(texts(home(settings))) == 100, "the others are through")
        say(bus, good[0], "life")
        wait_applied(redis_client, settings, timeout=30)
        (status,) = read_status(settings).providers
        flag.unlink()
    assert (status.parked_keys, status.dead_letters) == (1, 2)


def test_an_instance_stays_open_until_its_last_call_has_returned(
    redis_client, make_settings, tmp_path
):
    """G6: an abandoned call returns after its worker has ended: it finds its instance open."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=1, call_timeout=0.5, **recorded("TellsClosing"))
    (hanging,) = neighbour_sessions(settings, 1)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, hanging, f"!hang={flag} late")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings, timeout=30)
    assert CLOSED not in calls(home(settings))
    flag.unlink()
    wait_until(lambda: CLOSED in calls(home(settings)), "the instance is closed")
    assert texts(home(settings)) == [f"!hang={flag} late"]


def test_a_backend_that_is_down_is_probed_and_nothing_is_parked(
    redis_client, make_settings, tmp_path
):
    """G6: an outage costs one call for each event under way and then single probes."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(concurrency=8, attempts=2, **recorded("KeyedSide"))
    names = [f"s{number}" for number in range(50)]
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        for name in names:
            say(bus, name, f"!unavailable={flag} {name}", f"after {name}")
        assert bus.flush(timeout=25)
        wait_until(lambda: len(calls(home(settings))) >= 5, "it has been tried")
        wait_until(lambda: backlog(redis_client, settings) > 0, "and waits")
        flag.unlink()
        wait_applied(redis_client, settings, timeout=40)
        (status,) = read_status(settings).providers
    assert status.dead_letters == 0
    assert len(texts(home(settings))) == 100
    assert len(calls(home(settings))) <= 150


def test_transient_failures_of_every_event_park_nothing(redis_client, make_settings, tmp_path):
    """G6: a backend that answers 500 to everything is down, whatever it calls it."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(concurrency=8, attempts=2, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        for number in range(30):
            say(bus, f"s{number}", f"!transient={flag} {number}")
        assert bus.flush(timeout=25)
        wait_until(lambda: len(calls(home(settings))) >= 12, "it is tried and tried")
        flag.unlink()
        wait_applied(redis_client, settings, timeout=40)
        (status,) = read_status(settings).providers
    assert (status.dead_letters, len(texts(home(settings)))) == (0, 30)
