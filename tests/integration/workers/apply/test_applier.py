"""Events through lanes into providers: poison, retries, pauses, hangs, doubts."""

from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, effects, texts
from helpers.stories.scenario import (
    PATIENT,
    home,
    key_of,
    neighbour_sessions,
    partition,
    recorded,
    say,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status
from memorybus.redis.keys import Keys
from memorybus_workers.calls import thread_activity

KINDS = ["Transactional", "Keyed", "Lookup", "Blind"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def dead_letters(client: redis.Redis, settings: Settings, session: str) -> list[dict[str, Any]]:
    """Return the dead letters of a session's partition."""
    found: Any = client.xrange(Keys(settings.namespace).dead(partition(settings, session), "rec"))
    return [msgspec.json.decode(fields[b"r"]) for _, fields in found]


@every_kind
def test_events_are_applied_in_order_once(redis_client, make_settings, kind):
    """G3, G4: every event is applied once, those of one key in the order of the log."""
    settings = make_settings(batch=7, **PATIENT, **recorded(kind))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        for number in range(30):
            for name in ("a", "b", "c"):
                say(bus, name, f"{name} {number}")
        assert bus.flush()
        wait_applied(redis_client, settings)
    found = effects(home(settings))
    for name in ("a", "b", "c"):
        mine = [effect.text for effect in found if effect.session == name]
        assert mine == [f"{name} {number}" for number in range(30)]


@every_kind
@pytest.mark.parametrize("misdeed", ["!permanent", "!value"])
def test_poison_parks_only_its_key(redis_client, make_settings, kind, misdeed):
    """G6: a refused event is parked, later ones of its key behind it; other keys go on."""
    settings = make_settings(batch=5, **PATIENT, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        say(bus, bad, "before")
        say(bus, good, "one")
        say(bus, bad, f"{misdeed} poison", "after 1")
        say(bus, good, "two")
        say(bus, bad, "after 2")
        say(bus, good, *[f"more {number}" for number in range(10)])
        with thread_worker(settings):
            wait_applied(redis_client, settings)
            say(bus, bad, "after 3")
            say(bus, good, "last")
            assert bus.flush()
            wait_applied(redis_client, settings)
        more = [f"more {number}" for number in range(10)]
        assert texts(home(settings)) == ["before", "one", "two", *more, "last"]
    letters = dead_letters(redis_client, settings, bad)
    assert [letter["key"] for letter in letters] == [key_of(settings, bad)] * 4
    assert letters[0]["attempts"] == 1
    assert "told to raise" in letters[0]["reason"]
    assert {letter["reason"] for letter in letters[1:]} == {"waits behind the key's dead letter"}
    status = read_status(settings).providers[0]
    assert (status.parked_keys, status.dead_letters, status.backlog) == (1, 4, 0)
    assert status.applied == 2 + 14, "two starts, and the turns that were not parked"


@every_kind
def test_a_transient_failure_is_tried_again_then_parked(redis_client, make_settings, kind):
    """G6: a transient failure is tried `attempts` times before the key is parked."""
    settings = make_settings(attempts=3, **PATIENT, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, "!transient always")
        say(bus, good, "fine")
        wait_until(lambda: texts(home(settings)) == ["fine"], "the other key goes on", 15)
        wait_applied(redis_client, settings)
    (letter,) = dead_letters(redis_client, settings, bad)
    assert letter["attempts"] == 3


@every_kind
def test_a_transient_failure_that_passes_costs_nothing(redis_client, make_settings, tmp_path, kind):
    """G4: an event that succeeds at a later try is applied once, in its place."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=50, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "before", f"!transient={flag} later", "after")
        home_ = home(settings)
        wait_until(lambda: any("later" in what for what in calls(home_)), "it has been tried", 20)
        flag.unlink()
        wait_until(lambda: len(texts(home_)) == 3, "all are applied", 15)
        wait_applied(redis_client, settings)
    assert texts(home_) == ["before", f"!transient={flag} later", "after"]
    assert dead_letters(redis_client, settings, "s") == []


@every_kind
def test_an_unavailable_backend_parks_nothing(redis_client, make_settings, tmp_path, kind):
    """G6: while a backend is down its lanes wait, whatever `attempts`; then all goes on."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=1, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "before", f"!unavailable={flag} down", "after")
        wait_until(
            lambda: sum("down" in what for what in calls(home(settings))) >= 3, "tried again", 20
        )
        assert dead_letters(redis_client, settings, "s") == []
        flag.unlink()
        wait_until(lambda: len(texts(home(settings))) == 3, "all are applied", 20)
    assert texts(home(settings)) == ["before", f"!unavailable={flag} down", "after"]
    assert dead_letters(redis_client, settings, "s") == []


def test_providers_never_wait_for_each_other(redis_client, make_settings, tmp_path):
    """G9: a provider that is down or hangs does not slow the others."""
    down, hung = tmp_path / "down", tmp_path / "hung"
    down.touch()
    hung.touch()
    tables = {
        "down": {"kind": "helpers.providers.recording:Sick", "misdeed": f"!unavailable={down}"},
        "hung": {"kind": "helpers.providers.recording:Sick", "misdeed": f"!hang={hung}"},
        "well": {"kind": "helpers.providers.recording:Transactional"},
    }
    settings = make_settings(attempts=100, **PATIENT, providers=tuple(tables), provider=tables)
    wanted = [f"text {number}" for number in range(20)]
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", *wanted)
        wait_until(lambda: texts(home(settings, "well")) == wanted, "the sound one goes on", 15)
        assert texts(home(settings, "down")) == texts(home(settings, "hung")) == []
        down.unlink()
        hung.unlink()
        for name in tables:
            wait_applied(redis_client, settings, name, 30)
    assert texts(home(settings, "down")) == wanted
    assert set(texts(home(settings, "hung"))) == set(wanted)


@pytest.mark.parametrize("kind", ["Keyed", "Lookup", "Blind"])
def test_a_hanging_event_is_parked_after_its_tries(
    redis_client, make_settings, monkeypatch, tmp_path, kind
):
    """G6, G9: a call over `call_timeout` is abandoned; after `attempts` hangs its key is parked."""
    monkeypatch.setattr(thread_activity, "MAX_TIME_LIMITS", 3)
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=2, lease=20.0, call_timeout=1.0, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus:
        say(bus, bad, f"!hang={flag} for ever")
        say(bus, good, "fine")
        assert bus.flush()  # a hang counts once another event was served: it has to be there
    with thread_worker(settings):
        wait_until(lambda: "fine" in texts(home(settings)), "the other key goes on", 20)
        wait_applied(redis_client, settings)
        (letter,) = dead_letters(redis_client, settings, bad)
        tries = [what for what in calls(home(settings)) if "for ever" in what]
        flag.unlink()
    assert len(tries) == 2
    assert "call_timeout" in letter["reason"]
    assert (letter["attempts"], letter["key"]) == (2, key_of(settings, bad))


def test_a_hang_inside_a_transaction_ends_with_it(redis_client, make_settings, tmp_path):
    """G4: while an abandoned call holds the store, nothing is parked wrongly; then all goes on."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(attempts=50, call_timeout=0.3, **recorded("Transactional", busy=0.1))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "before", f"!hang={flag} a while", "after")
        lane = Keys(settings.namespace).lane(0, "rec")
        wait_until(lambda: int(redis_client.hget(lane, "epoch") or 0) > 2, "tried again", 20)
        flag.unlink()
        wait_until(lambda: len(texts(home(settings))) == 3, "all are applied", 20)
        wait_applied(redis_client, settings)
        wait_until(
            lambda: read_status(settings).providers[0].lanes_owned == settings.partitions,
            "every lane is owned",
            15,
        )
    assert texts(home(settings)) == ["before", f"!hang={flag} a while", "after"]
    assert dead_letters(redis_client, settings, "s") == []


@pytest.mark.parametrize("misdeed", ["!transient", "!value", "!unavailable"])
def test_a_store_that_fails_at_the_start_keeps_no_lane(
    redis_client, make_settings, tmp_path, misdeed
):
    """G3: lanes that could not be begun are given back, and taken when the store is well again."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(**recorded("Transactional", begin=f"{misdeed}={flag}"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "hello")
        flag.unlink()
        wait_until(lambda: texts(home(settings)) == ["hello"], "the lane is run", 15)
        wait_until(
            lambda: read_status(settings).providers[0].lanes_owned == settings.partitions,
            "every lane is owned",
            15,
        )


def test_a_refusal_at_commit_parks_the_key(redis_client, make_settings):
    """G6: a store that refuses an event only at its commit parks that key like any other poison."""
    settings = make_settings(**recorded("Transactional", refuse_at_commit="bad"))
    bad, good = neighbour_sessions(settings, 2)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, bad, "bad")
        say(bus, good, "fine")
        wait_until(lambda: texts(home(settings)) == ["fine"], "the other key goes on", 15)
        wait_applied(redis_client, settings)
    assert [letter["key"] for letter in dead_letters(redis_client, settings, bad)] == [
        key_of(settings, bad)
    ]


def test_a_lookup_is_asked_before_a_second_send(redis_client, make_settings, tmp_path):
    """G4: an event that the backend stored, but whose answer was lost, is not sent again."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(**PATIENT, **recorded("Lookup"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", f"!stored={flag} once", "after")
        wait_applied(redis_client, settings)
        wait_until(lambda: "after" in texts(home(settings)), "the next is applied")
    assert texts(home(settings)) == [f"!stored={flag} once", "after"]


def test_a_lookup_that_cannot_tell_does_not_stop_the_provider(redis_client, make_settings):
    """G6: a question about an event in doubt that fails for good parks its key; others go on."""
    settings = make_settings(**recorded("Lookup", knows="!value"))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("in doubt", "ok")
        assert bus.flush()
        with thread_worker(settings):
            bad = partition(settings, "s")
            names = (f"n{number}" for number in range(1_000))
            other = next(name for name in names if partition(settings, name) == bad)
            say(bus, other, "fine")
            wait_until(lambda: "fine" in texts(home(settings)), "another key goes on", 15)


def test_a_lookup_that_hangs_is_noticed(redis_client, make_settings, tmp_path):
    """G9: a question to the backend has a deadline like any call."""
    flag = tmp_path / "flag"
    flag.touch()
    settings = make_settings(
        call_timeout=0.3, attempts=100, **recorded("Lookup", knows=f"!hang={flag}")
    )
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one")
        assert bus.flush()
        lane = Keys(settings.namespace).lane(partition(settings, "s"), "rec")
        redis_client.hset(lane, "sent", 100)  # a former owner may have handed it over
        with thread_worker(settings):
            wait_until(
                lambda: calls(home(settings)).count("knows") >= 2, "another instance asks", 15
            )
            flag.unlink()
            wait_until(lambda: texts(home(settings)) == ["one"], "it is applied", 15)


def test_an_event_twice_in_one_batch_is_applied_once(redis_client, make_settings):
    """G4: an event that stands in the log twice, side by side, is applied once."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus:
        say(bus, "s", "one")
        assert bus.flush()
        entries: Any = redis_client.xrange(keys.log(0))
        redis_client.xadd(keys.log(0), {"n": 3, "e": entries[-1][1][b"e"]})
        redis_client.hset(keys.state(0), "n", 3)
        with thread_worker(settings):
            wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["one"]


def test_a_ledger_knows_what_comes_again_at_another_place(redis_client, make_settings):
    """G4: an event that is in the log twice is applied once by a transactional provider."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one")
        assert bus.flush()
        entries: Any = redis_client.xrange(keys.log(0))
        redis_client.xadd(keys.log(0), {"n": 3, "e": entries[-1][1][b"e"]})
        redis_client.hset(keys.state(0), "n", 3)
        say(bus, "s", "two")
        assert bus.flush()
        wait_until(lambda: "two" in texts(home(settings)), "the next is applied")
    assert texts(home(settings)) == ["one", "two"]


def test_events_nobody_handles_count_as_applied(redis_client, make_settings):
    """G3: an event whose hook a provider does not override is passed without a call."""
    settings = make_settings(**recorded("Blind"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        session = bus.session("s", warm=False)
        session.turn_started("hello")
        session.ended("done")
        assert bus.flush()
        wait_applied(redis_client, settings)
        assert read_status(settings).providers[0].applied == 3
    assert calls(home(settings)) == []
