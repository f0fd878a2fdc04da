"""Turns in bulk: fewer calls, and the promises of one call for each (G3, G4, G6)."""

from collections import Counter

import msgspec
import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import (
    PATIENT,
    home,
    recorded,
    say,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters

TURNS = 50
each = pytest.mark.parametrize(
    "kind", ["KeyedBulk", "LookupBulk", "KeyedBulkSide", "LookupBulkSide"]
)
each_lookup = pytest.mark.parametrize("kind", ["LookupBulk", "LookupBulkSide"])


def spoken(settings: Settings, *sessions: str, count: int = TURNS) -> None:
    """Publish turns of some sessions, which take turns."""
    with MemoryBus.connect(settings) as bus:
        for number in range(count):
            for session in sessions:
                say(bus, session, f"{session} {number:02d}")
        assert bus.flush(timeout=25)


def of(settings: Settings, session: str) -> list[str]:
    """Return what was remembered of a session, in order."""
    return [text for text in texts(home(settings)) if text.startswith(f"{session} ")]


def in_order(session: str, count: int = TURNS) -> list[str]:
    """Return what there is to remember of a session."""
    return [f"{session} {number:02d}" for number in range(count)]


def called_in_bulk(settings: Settings) -> list[str]:
    """Return the calls for several turns."""
    return [call for call in calls(home(settings)) if call.startswith("bulk ")]


@each
def test_a_backlog_goes_in_few_calls_and_in_order(redis_client, make_settings, kind):
    """G3: turns go together, each key's in order, and far fewer calls than turns are made."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    sessions = ("a", "b")
    spoken(settings, *sessions)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    for session in sessions:
        assert of(settings, session) == in_order(session)
    assert len(calls(home(settings))) <= 2 * TURNS / 5
    assert called_in_bulk(settings)


@each
def test_slow_calls_stay_large(redis_client, make_settings, kind):
    """However long a bulk call takes, the next one holds as many turns as the provider allows."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind, whole="!takes=0.2"))
    spoken(settings, "a", count=200)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert of(settings, "a") == in_order("a", 200)
    assert len(calls(home(settings))) <= 200 / 20 + 3


def test_a_blind_provider_gets_one_turn_at_a_time(redis_client, make_settings):
    """G4: each turn of a bulk call would be one more that a crash may repeat."""
    settings = make_settings(partitions=1, **PATIENT, **recorded("BlindBulk"))
    spoken(settings, "a", count=10)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert of(settings, "a") == in_order("a", 10)
    assert not called_in_bulk(settings)


@each
def test_a_turn_that_fails_parks_its_key_alone(redis_client, make_settings, kind):
    """G6: of a call in which one turn is refused, the turns of all other keys are remembered."""
    settings = make_settings(partitions=1, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        for number in range(5):
            say(bus, "a", f"a {number:02d}")
            say(bus, "b", f"b {number:02d}" if number != 2 else "!permanent b")
        assert bus.flush(timeout=25)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    assert of(settings, "a") == in_order("a", 5)
    assert of(settings, "b") == in_order("b", 2)
    assert len(list(DeadLetters(settings).letters(["rec"]))) == 3


@each
def test_a_turn_that_fails_for_a_while_holds_its_key_up(redis_client, make_settings, kind, flag):
    """G3: what stands behind a failing turn in the same call comes after it, once, in order."""
    settings = make_settings(partitions=1, attempts=1_000, **PATIENT, **recorded(kind))
    bad = f"!transient={flag} a"
    with MemoryBus.connect(settings) as bus:
        say(bus, "a", "a 00", bad, "a 01", "a 02")
        say(bus, "b", "b 00", "b 01")
        assert bus.flush(timeout=25)
    with thread_worker(settings):
        wait_until(lambda: of(settings, "b") == in_order("b", 2), "another key goes on")
        assert of(settings, "a") == ["a 00"]
        flag.unlink()
        wait_applied(redis_client, settings)
    said = [text for text in texts(home(settings)) if not text.startswith("b ")]
    assert said == ["a 00", bad, "a 01", "a 02"]


@each
@pytest.mark.parametrize("misdeed", ["!stored", "!stored_down"])
def test_a_lost_answer_repeats_nothing(redis_client, make_settings, flag, kind, misdeed):
    """G4: after a call for several turns that is stored, not answered, each is there once."""
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    lost = f"{misdeed}={flag} a"
    with MemoryBus.connect(settings) as bus:
        say(bus, "a", "a 00", "a 01", lost, "a 02")
        say(bus, "b", "b 00", "b 01")
        assert bus.flush(timeout=25)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    found = texts(home(settings))
    assert Counter(found) == Counter(["a 00", "a 01", lost, "a 02", "b 00", "b 01"])
    assert [text for text in found if not text.startswith("b ")] == ["a 00", "a 01", lost, "a 02"]
    assert called_in_bulk(settings)


@each
def test_a_call_that_is_refused_whole_is_tried_turn_by_turn(redis_client, make_settings, kind):
    """G6: a bug of the bulk call parks nothing that `sync_turn` takes."""
    settings = make_settings(partitions=1, **recorded(kind, whole="!value"))
    spoken(settings, "a", "b", count=8)
    with thread_worker(settings):
        wait_applied(redis_client, settings)
    for session in ("a", "b"):
        assert of(settings, session) == in_order(session, 8)
    assert called_in_bulk(settings)


@each
def test_a_worker_that_dies_in_a_bulk_call_repeats_nothing(
    redis_client, make_settings, spawn, kind
):
    """G4: killed after a call for several turns was stored, the next owner adds nothing twice."""
    settings = make_settings(partitions=1, lease=2.0, call_timeout=1.0, **recorded(kind))
    spoken(settings, "a", "b", count=10)
    dying = worker(
        spawn, msgspec.structs.replace(settings, crash_at="recording.after_bulk:1"), wait=False
    )
    assert dying.wait() != 0
    assert called_in_bulk(settings)
    worker(spawn, settings)
    wait_applied(redis_client, settings)
    for session in ("a", "b"):
        assert of(settings, session) == in_order(session, 10)


@each_lookup
def test_a_bulk_call_that_hangs_lands_once(redis_client, make_settings, flag, kind):
    """G4: no turn of an abandoned call is sent again before that call has returned."""
    timings = {"call_timeout": 1.0, "lease": 2.0, "partitions": 1, "attempts": 100}
    settings = make_settings(**timings, **recorded(kind, whole=f"!hang={flag}"))
    spoken(settings, "a", count=6)
    with thread_worker(settings) as running:
        wait_until(lambda: called_in_bulk(settings), "it is sent")
        (host,) = running._hosts.all
        wait_until(lambda: host._hung, "it is abandoned")
        assert texts(home(settings)) == []
        flag.unlink()
        wait_applied(redis_client, settings)
    assert of(settings, "a") == in_order("a", 6)
