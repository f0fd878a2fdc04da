"""Lanes with failing, hanging and deadly events: what costs a dead letter, and what only time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.replaying import replay
from helpers.stories.scenario import (
    NAME,
    begin_after_a_failure,
    environ,
    home,
    key_of,
    leave_dead,
    partition,
    recorded,
    say,
    spread_sessions,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.dead_letters.records import LetterRequest, LetterRequests
from memorybus.ids import new_id
from memorybus.redis.keys import Keys
from memorybus_workers.hosting import host, lane_set
from memorybus_workers.processes.worker import Worker

EVER = 1000
"""Attempts that a test does not come to the end of."""


def host_of(running: Worker) -> Any:
    """Return what keeps the worker's only provider running."""
    return running._hosts.all[0]


def letters(client: redis.Redis, settings: Settings) -> list[dict[str, Any]]:
    """Return the dead letters of the only lane."""
    found: Any = client.xrange(Keys(settings.namespace).dead(0, NAME))
    return [msgspec.json.decode(fields[b"r"]) for _, fields in found]


def number_of(client: redis.Redis, settings: Settings, text: str) -> int:
    """Return the dense number of the only event in the log that holds a text."""
    found: Any = client.xrange(Keys(settings.namespace).log(0))
    (n,) = [int(fields[b"n"]) for _, fields in found if text.encode() in b"".join(fields.values())]
    return n


def mourn(client: redis.Redis, settings: Settings, *numbers: int, deaths: int = 1) -> None:
    """Leave the only lane as owners leave it who were killed in a row, just above its first event.

    That one is a session's beginning, which is nobody's fault. See `leave_dead` for the rest.
    """
    keys = Keys(settings.namespace)
    lane = keys.lane(0, NAME)
    ((entry, _),) = cast("Any", client.xrange(keys.log(0), count=1))
    client.hset(lane, mapping={"deaths": 5, "entry": entry, "n": 1})
    leave_dead(client, lane, *numbers, deaths=deaths)


def outlasted(client: redis.Redis, settings: Settings, flag: Path) -> None:
    """Let a worker take over from dead ones, try for a while, and succeed once the flag is gone."""
    mourn(client, settings, 2)
    with thread_worker(settings):
        wait_until(lambda: len(calls(home(settings))) >= 4, "it was tried again and again")
        flag.unlink()
        wait_applied(client, settings)


# -- what is not the event's fault ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Keyed", "KeyedSide", "Transactional"])
def test_an_outage_after_a_kill_parks_nothing(redis_client, make_settings, flag, kind):
    """G6: where workers died, a call that came back is no suspect, however often it failed."""
    settings = make_settings(partitions=1, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", f"!unavailable={flag} hello")
        assert bus.flush(timeout=25)
        outlasted(redis_client, settings, flag)
    assert letters(redis_client, settings) == []
    assert texts(home(settings)) == [f"!unavailable={flag} hello"]


def test_a_hanging_backend_after_a_kill_parks_nothing(redis_client, make_settings, flag):
    """G6: where workers died, a call that outlived its time ended a thread, not its worker."""
    timings = {"call_timeout": 0.2, "lease": 1.0, "attempts": EVER}
    settings = make_settings(partitions=1, **timings, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", f"!hang={flag} hello")
        assert bus.flush(timeout=25)
        outlasted(redis_client, settings, flag)
    assert letters(redis_client, settings) == []


def test_a_backend_that_is_down_costs_few_calls(redis_client, make_settings, flag):
    """G10: once a backend is known to be down it gets single calls, however many keys wait."""
    settings = make_settings(partitions=4, concurrency=4, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus:
        for number in range(300):
            say(bus, f"s{number}", f"!unavailable={flag} x")
        assert bus.flush(timeout=25)
        with thread_worker(settings) as running:
            breaker = host_of(running)._breaker
            wait_until(lambda: breaker.failures >= 4, "it was probed")
            made = len(calls(home(settings)))
            assert made <= 2 * settings.concurrency + breaker.failures, "what was handed out before"
            flag.unlink()
            wait_applied(redis_client, settings)
    assert len(texts(home(settings))) == 300


def test_a_replay_outlives_an_outage(redis_client, make_settings, monkeypatch, flag):
    """G6: a replay waits for a backend that is down, also when its instance is opened anew."""
    monkeypatch.setattr(lane_set, "FAILURES_BEFORE_REOPEN", 2)
    settings = make_settings(partitions=1, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus, ThreadPoolExecutor() as threads:
        say(bus, "s", f"!unavailable={flag} x", "y")
        assert bus.flush(timeout=25)
        filling = threads.submit(replay, settings)
        copy = home(settings, "copy")
        try:
            wait_until(lambda: len(calls(copy)) >= 4 or filling.done(), "it is tried for long")
        finally:
            flag.unlink()
        assert filling.result(20).applied == 3
    assert texts(copy) == [f"!unavailable={flag} x", "y"]


def test_a_backend_that_stays_down_keeps_its_error(redis_client, make_settings, monkeypatch, flag):
    """G6: status names the backend's own error, also after its instance was opened anew."""
    monkeypatch.setattr(lane_set, "FAILURES_BEFORE_REOPEN", 2)
    settings = make_settings(partitions=1, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, "s", f"!unavailable={flag} x")
        assert bus.flush(timeout=25)
        reopened: list[str] = []

        def is_reopened() -> bool:
            reopened.append(host_of(running).failing)
            return "reconnecting" in reopened[-1]

        wait_until(is_reopened, "its instance is opened anew")
        flag.unlink()
        wait_applied(redis_client, settings)
    assert reopened[-1] == "told to raise Unavailable; reconnecting"


# -- what is --------------------------------------------------------------------------------------


def test_a_deadly_event_far_above_a_waiting_key_is_found(redis_client, make_settings, flag):
    """G6: what ends its workers is parked, also if the checkpoint waits far below it."""
    sizes = {"partitions": 1, "window": 8, "batch": 8, "attempts": EVER}
    settings = make_settings(**sizes, **recorded("Keyed"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "bad", f"!transient={flag} x")
        say(bus, "good", *[str(number) for number in range(90)])
        say(bus, "deadly", "this one")
        assert bus.flush(timeout=25)
        n = number_of(redis_client, settings, "this one")
        mourn(redis_client, settings, n, deaths=3)
        with thread_worker(settings):
            wait_until(lambda: letters(redis_client, settings), "it is parked")
            flag.unlink()
            wait_applied(redis_client, settings)
    (letter,) = letters(redis_client, settings)
    assert letter["reason"] == "it ended its worker 3 times"
    assert "this one" not in texts(home(settings))


def test_what_goes_alone_is_alone_in_its_instance(redis_client, make_settings, flag):
    """G6: of two lanes whose owners died, one event is under way: it alone may end the worker."""
    settings = make_settings(partitions=3, call_timeout=8.0, lease=10.0, **recorded("KeyedSide"))
    keys = Keys(settings.namespace)
    first, second, sound = spread_sessions(settings, 3)
    with MemoryBus.connect(settings) as bus:
        say(bus, first, f"!hang={flag} first")
        say(bus, second, f"!hang={flag} second")
        say(bus, sound, "sound")
        assert bus.flush(timeout=25)
        for name in (first, second):
            leave_dead(redis_client, keys.lane(partition(settings, name), NAME), 1, 2)
        with thread_worker(settings):
            wait_until(lambda: texts(home(settings)) == ["sound"], "the sound lane goes on")
            say(bus, sound, "sound again")
            wait_until(lambda: len(texts(home(settings))) == 2, "the sound lane had another turn")
            wait_until(lambda: len(calls(home(settings))) >= 3, "one of the others is called")
            assert len(calls(home(settings))) == 3
            flag.unlink()
            wait_applied(redis_client, settings)
    assert len(texts(home(settings))) == 4


def test_a_deadly_event_that_is_parked_uncalled_is_no_probe(
    redis_client, make_settings, monkeypatch
):
    """G6: an event that is parked without a call leaves the next call to probe the backend."""
    begin_after_a_failure(monkeypatch)
    settings = make_settings(partitions=1, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "deadly", "this one")
        say(bus, "good", "fine")
        assert bus.flush(timeout=25)
        n = number_of(redis_client, settings, "this one")
        mourn(redis_client, settings, n, deaths=3)
        with thread_worker(settings):
            wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["fine"]
    assert len(letters(redis_client, settings)) == 1


def test_hung_calls_of_a_closed_instance_still_count(
    redis_client, make_settings, monkeypatch, flag
):
    """G10: threads that hang are counted for the worker's life, not for the instance's."""
    monkeypatch.setattr(host, "MOST_HUNG", 1)
    limits = {"call_timeout": 2.0, "lease": 4.0, "attempts": 1, "concurrency": 2}
    settings = make_settings(partitions=1, **limits, **recorded("KeyedSide"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, "a", f"!hang={flag} one")
        say(bus, "b", f"!hang={flag} two")
        wait_until(lambda: len(letters(redis_client, settings)) == 2, "both are parked")
        runner = host_of(running)._runner
        lanes = runner._lanes
        lanes._redis.connection._sock.shutdown(2)
        say(bus, "c", "news")
        wait_until(lambda: runner._lanes is not lanes, "another instance is open")
        assert not running.failed
        say(bus, "d", f"!hang={flag} three")
        wait_until(lambda: running.failed, "the worker gives up")
        flag.unlink()


def test_a_letter_that_hangs_again_is_refused_again(redis_client, make_settings, flag):
    """G6: to retry what still hangs costs one call; the request is done with, others go on."""
    timings = {"call_timeout": 2.0, "lease": 20.0, "attempts": 1}
    settings = make_settings(partitions=1, **timings, **recorded("Keyed"))
    requests = LetterRequests(redis_client, Keys(settings.namespace), NAME)
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, "bad", f"!hang={flag} x")
        wait_until(lambda: letters(redis_client, settings), "it is parked")
        before = len(calls(home(settings)))
        requests.send([LetterRequest(new_id(), 0, "retry", keys=(key_of(settings, "bad"),))])
        wait_until(lambda: not requests.waiting_fields(), "the request is carried out")
        assert len(calls(home(settings))) == before + 1
        say(bus, "good", "fine")
        wait_until(lambda: texts(home(settings)) == ["fine"], "others go on")
        assert not running.failed
        flag.unlink()
    (letter,) = letters(redis_client, settings)
    assert letter["reason"] == "every try outlived call_timeout, or the time limit of its hook"


# -- what waits, and what goes on -----------------------------------------------------------------


def test_an_event_in_doubt_above_waiting_ones_is_asked_for(
    redis_client, make_settings, spawn, flag
):
    """G4: ``lookup`` asks for what a dead owner had handed over, also above events that wait."""
    settings = make_settings(partitions=1, lease=1.0, call_timeout=0.5, **recorded("Lookup"))
    with MemoryBus.connect(settings) as bus:
        say(bus, "good", "first")
        say(bus, "bad", f"!transient={flag} x", "y", "z")
        say(bus, "good", "only once")
        assert bus.flush(timeout=25)
    crash = {"MEMORYBUS_CRASH_AT": "recording.after_effect:2"}
    words = ("-m", "memorybus_workers", "worker", "--jobs", "0")
    child = spawn(*words, env=environ(settings) | crash)
    wait_until(lambda: not child.alive, "it died after the effect")
    assert texts(home(settings)) == ["first", "only once"]
    flag.unlink()
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["first", "only once", f"!transient={flag} x", "y", "z"]


def test_a_backlog_goes_on_after_an_outage_while_another_lane_is_busy(
    redis_client, make_settings, flag
):
    """G2: a lane without news is not forgotten for one that has news all the time."""
    settings = make_settings(partitions=4, batch=50, **recorded("Keyed"))
    quiet, busy = spread_sessions(settings, 2)
    keys, place = Keys(settings.namespace), partition(settings, quiet)

    def drained() -> bool:
        say(bus, busy, "load")  # as long as we wait
        n: Any = redis_client.hget(keys.lane(place, NAME), "n")
        head: Any = redis_client.hget(keys.state(place), "n")
        return int(n or 0) == int(head)

    with MemoryBus.connect(settings) as bus:
        say(bus, busy, f"!unavailable={flag} x")
        say(bus, quiet, *[str(number) for number in range(500)])
        assert bus.flush(timeout=25)
        with thread_worker(settings) as running:
            breaker = host_of(running)._breaker
            wait_until(lambda: breaker.failures >= 2, "the backend is down")
            flag.unlink()
            wait_until(drained, "the quiet lane is done")


@pytest.mark.parametrize(("kind", "applied"), [("Keyed", 640), ("DeafSide", 0)])
def test_a_batch_above_the_window_drains_at_full_speed(
    redis_client, make_settings, monkeypatch, kind, applied
):
    """G10: the window bounds what is held, not how soon the lane reads on."""
    # A lane that waits for it is never done.
    monkeypatch.setattr(lane_set, "FULL_LOOK_SECONDS", 10.0)
    settings = make_settings(partitions=1, window=32, batch=33, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        for number in range(640):
            say(bus, f"s{number % 97}", str(number))
        assert bus.flush(timeout=25)
        with thread_worker(settings):
            wait_applied(redis_client, settings, timeout=30)  # 20 windows
    assert sorted(map(int, texts(home(settings)))) == list(range(applied))


def test_a_gap_below_what_is_done_is_passed(redis_client, make_settings, flag):
    """G3: if the entry a lane stood before is gone, it goes on behind it and repeats nothing."""
    settings = make_settings(partitions=1, attempts=EVER, **recorded("KeyedSide"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus:
        say(bus, "bad", f"!transient={flag} x")
        say(bus, "good", "1", "2", "3")
        assert bus.flush(timeout=25)
        with thread_worker(settings):
            wait_until(lambda: len(texts(home(settings))) == 3, "the others are done")
        n: Any = redis_client.hget(keys.lane(0, NAME), "n")
        found: Any = redis_client.xrange(keys.log(0))
        (gone,) = [entry for entry, fields in found if int(fields[b"n"]) == int(n) + 1]
        redis_client.xdel(keys.log(0), gone)
        say(bus, "good", "4")
        assert bus.flush(timeout=25)
        with thread_worker(settings):
            wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["1", "2", "3", "4"]
    assert [what for what in calls(home(settings)) if what in "1234"] == ["1", "2", "3", "4"]
