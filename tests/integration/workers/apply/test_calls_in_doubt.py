"""What was sent and not answered: asked for, waited for, and not sent a second time (G4)."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import (
    NAME,
    PATIENT,
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
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import LetterRequest, LetterRequests
from memorybus.ids import digest, new_id
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.redis.scripts import Appended, OutgoingEvent
from memorybus.wire.codec import Decoder
from memorybus_workers.apply.applier import STILL_UNDER_WAY
from memorybus_workers.calls import thread_activity

LOCKED = 4.0
"""Seconds for which a store is locked, a third of the time for which a call is waited for."""

either_lookup = pytest.mark.parametrize("kind", ["Lookup", "LookupSide"])


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Hold the write lock of the provider's store."""
    db = sqlite3.connect(home(settings) / "effects.db", isolation_level=None, timeout=20)
    db.execute("begin immediate")
    try:
        yield
    finally:
        db.execute("rollback")
        db.close()


def lane_owner(client: redis.Redis, settings: Settings, session: str) -> str:
    """Return who holds the lease of a session's lane, "" for nobody."""
    raw: Any = client.get(Keys(settings.namespace).lease(partition(settings, session), NAME))
    return (raw or b":").decode().partition(":")[2]


def retry(client: redis.Redis, settings: Settings) -> None:
    """Let the only dead letter of partition 0 be retried, and wait until that is done with."""
    (letter,) = DeadLetters(settings).letters([NAME])
    key = letter.stored.letter.key
    requests = LetterRequests(client, Keys(settings.namespace), NAME)
    requests.send([LetterRequest(new_id(), 0, "retry", keys=(key,), reason="why", operator="me")])
    wait_until(lambda: not requests.waiting_fields(), "it was carried out")


@either_lookup
@pytest.mark.parametrize("misdeed", ["!stored", "!stored_down"])
def test_what_was_stored_and_not_answered_is_asked_for(
    redis_client, make_settings, flag, kind, misdeed
):
    """G4: ``lookup``: whatever a call raised, the backend is asked before the event goes again."""
    settings = make_settings(**PATIENT, **recorded(kind))
    text = f"{misdeed}={flag} once"
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "first", "fine")
        wait_until(lambda: texts(home(settings)) == ["fine"], "the lanes are at work")
        asked = calls(home(settings)).count("knows")
        say(bus, "s", text, "after")
        wait_until(lambda: "after" in texts(home(settings)), "the next is applied")
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["fine", text, "after"]
    assert calls(home(settings)).count("knows") > asked


@pytest.mark.parametrize("kind", ["Lookup", "LookupSide", "LookupBulk", "LookupBulkSide"])
def test_what_is_sent_again_after_a_loss_is_asked_for(redis_client, make_settings, kind):
    """G4: ``lookup``: an event that a producer marks as sent before is asked for wherever it lies.

    Its lane has lost nothing, so only the mark shows that the backend may have it.
    """
    settings = make_settings(partitions=1, **PATIENT, **recorded(kind))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", "one", "two")
        wait_until(lambda: texts(home(settings)) == ["one", "two"], "both are applied")
        asked = calls(home(settings)).count("knows")
        send_again(redis_client, settings, "one", "two")
        say(bus, "s", "three")
        wait_until(lambda: "three" in texts(home(settings)), "the next is applied")
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["one", "two", "three"]
    assert calls(home(settings)).count("knows") == asked + 2


def send_again(client: redis.Redis, settings: Settings, *words: str) -> None:
    """Append the events with some texts again, as a spool does after Redis has lost them."""
    keys = Keys(settings.namespace)
    bodies = [fields[b"e"] for _, fields in cast("Any", client.xrange(keys.log(0)))]
    again = [body for body in bodies if any(word.encode() in body for word in words)]
    ids = [bytes.fromhex(Decoder().decode(body).id) for body in again]
    events = [
        OutgoingEvent(number, event_id, digest(body), body)
        for number, (event_id, body) in enumerate(zip(ids, again, strict=True), 1)
    ]
    client.delete(*keys.seen(0))
    call = scripts.append(
        keys, 0, "again", 0, events, window_ms=60_000, max_ids=100, possibly_delivered=len(events)
    )
    assert scripts.run(client, call) == Appended([])


@pytest.mark.parametrize(("kind", "most"), [("Lookup", 1), ("LookupSide", 1), ("Blind", 2)])
def test_a_store_that_is_locked_for_long_has_one_effect(
    redis_client, make_settings, spawn, kind, most
):
    """G4: an abandoned call that lands later is no second effect; of ``blind`` one, not many."""
    timings = {"call_timeout": 1.0, "lease": 2.0, "attempts": 100, "partitions": 2}
    settings = make_settings(**timings, **recorded(kind, busy=60))
    workers = [worker(spawn, settings), worker(spawn, settings)]
    with MemoryBus.connect(settings) as bus:
        say(bus, "a", "before")
        wait_until(lambda: texts(home(settings)), "the store is there")
        wait_applied(redis_client, settings)
        with locked(settings):
            say(bus, "a", "late", "later")
            wait_until(lambda: "late" in calls(home(settings)), "it is sent")
            until = SYSTEM.monotonic() + LOCKED
            wait_until(lambda: SYSTEM.monotonic() > until, "the store was locked for a while")
        wait_until(lambda: "later" in texts(home(settings)), "all goes on")
        wait_applied(redis_client, settings)
    assert any("is abandoned" in child.output() for child in workers), "no call hung"
    found = Counter(texts(home(settings)))
    assert set(found) == {"before", "late", "later"}
    assert max(found.values()) <= most, found


@pytest.mark.parametrize("kind", ["Lookup", "LookupSide", "Blind"])
def test_a_key_waits_for_its_abandoned_call_and_others_go_on(
    redis_client, make_settings, spawn, flag, kind
):
    """G4, G6: nobody sends an event while its call may land; its lane stays, other keys go on."""
    timings = {"call_timeout": 1.0, "lease": 2.0, "partitions": 1}
    settings = make_settings(attempts=100, **timings, **recorded(kind))
    bad, good = neighbour_sessions(settings, 2)
    text = f"!hang={flag} a while"
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, bad, text, "behind")
        wait_until(lambda: text in calls(home(settings)), "it is sent")
        owner = lane_owner(redis_client, settings, bad)
        worker(spawn, settings)  # another one that would take the lane
        (host,) = running._hosts.all
        wait_until(lambda: host._hung, "it is abandoned")
        say(bus, good, "fine")
        wait_until(lambda: "fine" in texts(home(settings)), "another key goes on")
        until = SYSTEM.monotonic() + 2 * settings.lease
        wait_until(lambda: SYSTEM.monotonic() > until, "its lease would have run out")
        assert calls(home(settings)).count(text) == 1
        assert lane_owner(redis_client, settings, bad) == owner
        flag.unlink()
        wait_until(lambda: "behind" in texts(home(settings)), "the key goes on")
        wait_applied(redis_client, settings)
    counted = Counter(texts(home(settings)))
    assert counted == {text: 2 if kind == "Blind" else 1, "fine": 1, "behind": 1}


@either_lookup
def test_an_abandoned_call_is_not_waited_for_for_ever(
    redis_client, make_settings, monkeypatch, flag, kind
):
    """G4, G10: after `MAX_TIME_LIMITS` time-outs the backend is asked, and the event sent again."""
    monkeypatch.setattr(thread_activity, "MAX_TIME_LIMITS", 4)
    settings = make_settings(attempts=100, call_timeout=0.5, lease=3.0, **recorded(kind))
    text = f"!hang={flag} for ever"
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        begun = SYSTEM.monotonic()
        say(bus, "s", text)
        wait_until(lambda: text in calls(home(settings)), "it is sent")
        wait_until(lambda: calls(home(settings)).count(text) == 2, "it is sent again")
        assert (
            SYSTEM.monotonic() - begun
            > (thread_activity.MAX_TIME_LIMITS - 1) * settings.call_timeout
        )
        assert calls(home(settings))[-2] == "knows"
        flag.unlink()
        wait_applied(redis_client, settings)


def test_a_dead_letter_waits_for_its_abandoned_call(redis_client, make_settings, flag):
    """G4: what was parked while its call may land is not sent before; then it is asked for."""
    timings = {"call_timeout": 1.0, "lease": 3.0, "partitions": 1}
    settings = make_settings(attempts=1, **timings, **recorded("LookupSide"))
    text = f"!hang={flag} a while"
    dead = Keys(settings.namespace).dead(0, NAME)
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        say(bus, "s", text)
        wait_until(lambda: redis_client.xlen(dead), "it is parked")
        retry(redis_client, settings)
        (dead_letter,) = DeadLetters(settings).letters([NAME])
        assert dead_letter.stored.letter.reason == STILL_UNDER_WAY
        flag.unlink()
        wait_until(lambda: texts(home(settings)) == [text], "it has landed")
        retry(redis_client, settings)
        assert not redis_client.xlen(dead)
    assert texts(home(settings)) == [text]
    assert calls(home(settings)).count(text) == 1
