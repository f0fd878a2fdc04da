"""From the spool to the log: outages, lost acknowledgements, a log that lost its tail."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.clusters import with_replica
from helpers.redis.log import logged, numbered, publish
from helpers.redis.proxy import Proxy
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import (
    home,
    log_length,
    partition,
    recorded,
    spread_sessions,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import Settings
from memorybus.events import TurnCompleted
from memorybus.health.monitor import spool_status
from memorybus.redis.connect import TIMEOUT
from memorybus.redis.keys import Keys


def turns(settings: Settings, session: str) -> list[str]:
    """Return the texts of a session's turns as they stand in the log."""
    events = [one.envelope.event for one in logged(settings, session)]
    return [event.user for event in events if isinstance(event, TurnCompleted)]


def kill_clients(server: RedisServer) -> None:
    """Break every connection to a server but the one that says so."""
    server.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


# -- outages --------------------------------------------------------------------------------------


def test_redis_that_comes_later(make_redis, make_settings):
    """G1, G9: what was published before there was a Redis is in the log later, in order."""
    server = make_redis(appendonly="yes")
    server.kill()
    settings = make_settings(url=server.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 50)
        wait_until(lambda: session.turn_started("hello").log == "down", "the receipt says so")
        assert not bus.flush("logged", 0.05)
        assert bus.flush("spooled")
        server.start()
        assert bus.flush("logged", 25), bus.problem
        assert session.turn_started("hello").log == "up"
    assert turns(settings, "s") == numbered(50)


def test_order_holds_through_an_outage(private_redis, make_settings):
    """G3: what is published before, during and after an outage stands in the log in that order."""
    settings = make_settings(url=private_redis.url)
    names = [*spread_sessions(settings, 3)]
    with MemoryBus.connect(settings) as bus:
        sessions = [bus.session(name, warm=False) for name in names]
        for first in (0, 20, 40):
            for session in sessions:
                publish(session, first, 20)
            if first == 0:
                assert bus.flush("logged", 25)
                private_redis.kill()
            if first == 20:
                private_redis.start()
        assert bus.flush("logged", 25), bus.problem
    for name in names:
        assert turns(settings, name) == numbered(60)


def test_a_killed_connection_costs_nothing(private_redis, make_settings):
    """G2: connections killed again and again while events flow double and lose nothing."""
    settings = make_settings(url=private_redis.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for first in range(0, 300, 30):
            publish(session, first, 30)
            kill_clients(private_redis)
        assert bus.flush("logged", 25), bus.problem
    assert turns(settings, "s") == numbered(300)
    state = private_redis.client().hgetall(Keys(settings.namespace).state(partition(settings, "s")))
    assert b"duplicates" not in state, "known by sequence, not only by id"


@pytest.fixture(name="proxy")
def _proxy(redis_server: RedisServer, short_dir: Path) -> Iterator[Proxy]:
    proxy = Proxy(redis_server.socket, short_dir / "proxy")
    yield proxy
    proxy.close()


def test_a_lost_acknowledgement_makes_no_duplicate(proxy, redis_client, make_settings):
    """G2: when the script ran and its reply is lost, the resend adds nothing, time after time."""
    settings = make_settings(url=proxy.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        for first in range(0, 50, 10):
            proxy.drop_reply_after(b"EVALSHA")
            publish(session, first, 10)
            wait_until(lambda: proxy.dropped, "a reply was lost")
            assert bus.flush("logged", 25), bus.problem
    assert turns(make_settings(), "s") == numbered(50)
    assert log_length(redis_client, settings) == 51


def test_a_frozen_redis_never_blocks_publish(private_redis, make_settings):
    """G9: while Redis hangs, `publish` returns after its local write; later all is sent once."""
    settings = make_settings(url=private_redis.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        private_redis.freeze()
        done = threading.Event()
        thread = threading.Thread(target=lambda: (publish(session, 0, 200), done.set()))
        thread.start()
        assert done.wait(TIMEOUT - 0.5), "publishing waits for Redis"
        thread.join()
        private_redis.thaw()
        assert bus.flush("logged", 25)
    assert turns(settings, "s") == numbered(200)


# -- a log that forgot ----------------------------------------------------------------------------


def cut_tail(server: RedisServer, to_bytes: int) -> None:
    """Kill a server and start it again on an append-only file that lost its end."""
    server.kill()
    files = [
        server.directory / "appendonly.aof",
        *server.directory.glob("appendonlydir/*.incr.aof"),
    ]
    file = next(path for path in files if path.exists())
    assert file.stat().st_size > to_bytes, "nothing is lost"
    with file.open("r+b") as aof:
        aof.truncate(to_bytes)
    server.start(aof_load_truncated="yes")


def aof_size(server: RedisServer) -> int:
    """Return the size of a server's append-only file, everything before being in it."""
    client = server.client()
    client.config_set("appendfsync", "always")
    return int(client.info("persistence")["aof_current_size"])


def test_a_lost_tail_is_sent_again(private_redis, make_settings):
    """G1, G4: what Redis lost is resent from the spool; nothing is missing, nothing doubled."""
    settings = make_settings(
        url=private_redis.url, spool_keep=60.0, partitions=2, **recorded("Transactional")
    )
    client = private_redis.client()
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 40)
        assert bus.flush("logged", 25)
        wait_applied(client, settings)
        size = aof_size(private_redis)
        publish(session, 40, 40)
        assert bus.flush("logged", 25)
        wait_until(lambda: len(texts(home(settings))) == 80, "all are applied")
        cut_tail(private_redis, size)
        publish(session, 80, 20)
        assert bus.flush("logged", 25), bus.problem
        wait_until(lambda: len(texts(home(settings))) >= 100, "what came after is applied")
        wait_applied(private_redis.client(), settings)
    assert turns(settings, "s") == numbered(100)
    assert texts(home(settings)) == numbered(100)


def test_a_wiped_redis_is_filled_from_the_spool(make_redis, make_settings):
    """G1, G5: a Redis that forgot everything gets what the spool keeps, and lanes go on at once."""
    server = make_redis()
    settings = make_settings(
        url=server.url, spool_keep=60.0, lease=30.0, partitions=2, **recorded("Transactional")
    )
    for _ in range(3):  # owners come and go: the store has seen higher epochs than a new Redis has
        with thread_worker(settings):
            pass
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 20)
        wait_until(lambda: len(texts(home(settings))) == 20, "all are applied")
        server.kill()
        server.start()
        publish(session, 20, 20)
        assert bus.flush("logged", 25), bus.problem
        assert turns(settings, "s") == numbered(40)
        wait_until(lambda: len(texts(home(settings))) == 40, "applied without waiting", 20)
    assert texts(home(settings)) == numbered(40)


def test_rows_leave_the_spool_after_a_while(redis_server, make_settings):
    """G1: a row stays `spool_keep` seconds after Redis took it, then the file is emptied."""
    keeping = make_settings(spool_keep=300.0)
    with MemoryBus.connect(keeping) as bus:
        publish(bus.session("s", warm=False), 0, 20)
        assert bus.flush("logged", 25)
        size = bus.publisher.spool.size
        assert size > 0
        wait_until(lambda: spool_status(keeping).events == 0, "nothing counts as unsent")
        assert bus.publisher.spool.size == size
    with MemoryBus.connect(make_settings(spool_keep=0.1)) as bus:
        wait_until(lambda: bus.publisher.spool.size == 0, "the rows are deleted")
        assert bus.flush("logged", 25)


def test_what_cannot_be_resent_is_told(redis_server, make_settings, caplog):
    """G1: when Redis loses what the spool has deleted, the loss is told with its sequences."""
    settings = make_settings(spool_keep=0.1)
    with MemoryBus.connect(settings) as bus:
        publish(bus.session("s", warm=False), 0, 20)
        assert bus.flush("logged", 25)
        wait_until(lambda: bus.publisher.spool.size == 0, "the rows are deleted")
        redis_server.client().flushall()
        bus.session("s").turn_completed("after", "ok", ordinal=20)
        assert bus.flush("logged", 25)
    assert "Redis lost events of sequence" in caplog.text
    assert turns(settings, "s") == ["after"]


def test_a_full_redis_keeps_events_in_the_spool(make_redis, make_settings):
    """G1, G4: a Redis without memory takes nothing and is named; with room all goes, in order."""
    server = make_redis(maxmemory="2mb")
    settings = make_settings(url=server.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        server.client().config_set("maxmemory", "1")
        publish(session, 0, 30)
        wait_until(lambda: "maxmemory" in bus.problem, "the problem is named")
        assert not bus.flush("logged", 0.05)
        server.client().config_set("maxmemory", "0")
        assert bus.flush("logged", 25)
    assert turns(settings, "s") == numbered(30)
    assert not any(one.resent for one in logged(settings)), "nothing of it was there before"


# -- levels ---------------------------------------------------------------------------------------


def test_replicated_needs_a_replica(redis_server, make_settings):
    """G1: without a replica or a synced file `replicated` is refused in time, and costs no CPU."""
    with MemoryBus.connect(make_settings(spool_keep=0.1)) as bus:
        session = bus.session("s", warm=False)
        assert bus.flush("logged", 25)
        assert not bus.flush("replicated", 0.2)
        client = redis_server.client()
        client.config_resetstat()
        session.turn_completed("after", "ok")
        assert bus.flush("logged", 25)
        wait_until(lambda: bus.publisher.spool.size == 0, "some rounds have passed")
        stats: Any = client.info("commandstats")
        assert stats.get("cmdstat_info", {"calls": 0})["calls"] < 20, "the flusher spins"


def test_replicated_with_a_replica(make_redis, make_settings):
    """G1: `replicated` is told only when a replica has what was written, also after a reconnect."""
    master, replica = with_replica(make_redis)
    settings = make_settings(url=master.url)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 10)
        assert bus.flush("replicated", 25)
        assert log_length(replica.client(), settings) == 11
        replica.freeze()
        publish(session, 10, 10)
        assert bus.flush("logged", 25)
        assert not bus.flush("replicated", 0.5)
        kill_clients(master)
        session.turn_started("on a new connection")
        assert bus.flush("logged", 25)
        kill_clients(master)
        assert not bus.flush("replicated", 1.5), "the replica is frozen"
        replica.thaw()
        assert bus.flush("replicated", 25)
        assert log_length(replica.client(), settings) == 22


# -- under load -----------------------------------------------------------------------------------


@contextmanager
def stream_of_events(session: Session) -> Iterator[None]:
    """Publish small events on a thread meanwhile, without a pause that a flusher could use."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            session.turn_started("tick")
            stop.wait(0.0005)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_recall_is_asked_for_under_a_steady_stream(redis_client, make_settings):
    """G9: events that never stop keep neither recalls from being asked for nor rows."""
    settings = make_settings(spool_keep=0.1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        with stream_of_events(bus.session("load", warm=False)):
            wait_until(lambda: bus.last_sequence > 50, "events flow")
            session.queue_prefetch("what did I say")
            asked = f"{settings.namespace}:want:*"
            wait_until(lambda: list(redis_client.scan_iter(asked)), "the recall is asked for")
            spool = bus.publisher.spool
            wait_until(spool.deleted_sequences, "rows that were sent leave")


def test_a_conflict_is_told(redis_server, make_settings, caplog):
    """G2: the same event id with another payload is told by id; the first one stands."""
    caplog.set_level(logging.ERROR)
    settings = make_settings()
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        first = session.memory_written("add", "one", tool_call_id="call")
        session.memory_written("add", "two", tool_call_id="call")
        assert bus.flush("logged", 25)
    assert f"event {first.event_id} came again with another payload" in caplog.text


def test_a_dead_jobs_redis_does_not_hold_up_events(redis_server, make_settings):
    """G9: recalls that cannot be asked for keep no event from the log."""
    settings = make_settings(jobs_url="redis://127.0.0.1:1/0")
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        for number in range(5):
            session.turn_completed(f"turn {number}", "ok", ordinal=number)
            session.queue_prefetch(f"question {number}")
        assert bus.flush("logged", 25), bus.problem
    assert turns(settings, "s") == numbered(5)
