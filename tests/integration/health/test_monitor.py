"""The status: its stable shape, and its numbers against what is known."""

import re
from typing import Any

import msgspec
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.leaks import leaked_keys
from helpers.stories.scenario import home, recorded, thread_worker, wait_applied, worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.health.monitor import read_status, spool_status
from memorybus.redis.keys import Keys

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def status_of(settings: Settings) -> dict[str, Any]:
    """Return the status as it is printed."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(read_status(settings)))
    return found


def test_an_unused_namespace_has_a_whole_status(redis_server, make_settings):
    """G10: a namespace without a log has the same fields, and times are in ISO 8601."""
    settings = make_settings(**recorded("Transactional"))
    with MemoryBus.connect(settings) as bus, thread_worker(settings):
        bus.session("s", warm=False)
        assert bus.flush(timeout=25)
        status = status_of(settings)
    assert status["partitions"] == 16
    assert ISO.fullmatch(status["workers"][0]["heartbeat_at"])
    assert status["redis"]["durability"] == "memory"
    assert status_of(make_settings(namespace="fresh", **recorded("Blind"))).keys() == status.keys()


def test_counts_are_right(redis_client, make_settings):
    """G10: backlog, applied, parked and times follow what happens, by our own numbers."""
    settings = make_settings(lease=30.0, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        for name in ("a", "b", "c"):
            session = bus.session(name, warm=False)
            for number in range(5):
                session.turn_completed(f"{number}", "")
        bus.session("a", warm=False).turn_completed("!permanent", "")
        assert bus.flush(timeout=25)
        (before,) = status_of(settings)["providers"]
        assert (before["applied"], before["backlog"], before["lanes_owned"]) == (0, 19, 0)
        assert ISO.fullmatch(before["oldest_unapplied_at"])
        with thread_worker(settings):
            wait_applied(redis_client, settings)
            (after,) = status_of(settings)["providers"]
    assert (after["applied"], after["backlog"], after["lanes_owned"]) == (18, 0, 16)
    assert (after["parked_keys"], after["dead_letters"]) == (1, 1)
    assert after["oldest_unapplied_at"] is None
    assert status_of(settings)["workers"] == []


def test_trimming_does_not_move_the_backlog(redis_client, make_settings):
    """G10: the backlog is counted by dense numbers, never by the length of a stream."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    with MemoryBus.connect(settings) as bus:
        for number in range(9):
            bus.session("s", warm=False).turn_completed(f"{number}", "")
        assert bus.flush(timeout=25)
    redis_client.xtrim(Keys(settings.namespace).log(0), maxlen=2)
    assert status_of(settings)["providers"][0]["backlog"] == 10


def test_the_spool_is_shown_while_redis_is_away(make_settings):
    """G9: what waits for Redis is counted from outside, with the time since when."""
    settings = make_settings(url="redis://127.0.0.1:1/0")
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("x", "y")
        wait_until(lambda: spool_status(settings).events == 2, "both are counted")
        assert ISO.fullmatch(spool_status(settings).oldest_at or "")
        assert spool_status(settings).bytes > 100


def test_a_foreign_worker_entry_stops_no_worker(redis_client, make_settings):
    """G9: garbage among the heartbeats is somebody's mistake, and no worker ends by it."""
    settings = make_settings(**recorded("Transactional"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        before: Any = redis_client.hget(keys.workers, running.id)
        redis_client.hset(keys.workers, "foo", "bar")
        wait_until(lambda: redis_client.hget(keys.workers, running.id) != before, "it beats again")
        bus.session("s", warm=False).turn_completed("hello", "")
        wait_until(lambda: texts(home(settings)) == ["hello"], "events are applied")


def test_no_key_lives_for_ever_unknown(redis_server, make_settings, spawn):
    """G10: after a whole run every key without a time to live is in the table of keys."""
    settings = make_settings(recall_timeout=20.0, **recorded("Transactional"))
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("{p00}:*", user="a:b", title="a walnut tree")
        session.turn_completed("a walnut", "!")
        session.turn_completed("!permanent", "!")
        session.queue_prefetch("walnut")
        wait_until(lambda: "walnut" in session.prefetch(), "recalled")
        session.branch("b").queue_prefetch("walnut again")
        assert bus.recall("walnut", timeout=25).missing == {}
    assert child.terminate() == 0
    client = redis_server.client()
    ours = [
        raw.decode() for raw in client.scan_iter() if raw.startswith(settings.namespace.encode())
    ]
    assert len(ours) > 10
    assert leaked_keys(client) == []
