"""The same essentials on every server: what a release cannot do is found out, not assumed.

Servers that are not here are skipped with the command that gets them; see `helpers.redis.binaries`.
"""

from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.redis import binaries
from helpers.redis.binaries import Available
from helpers.redis.clusters import with_replica
from helpers.redis.log import numbered, publish
from helpers.stories.scenario import (
    agent,
    home,
    numbers,
    partition,
    recorded,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.errors import UnsafeRedis
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

pytestmark = pytest.mark.servers

NAME = "rec"


@pytest.fixture(name="server", params=binaries.NAMES)
def _server(request: pytest.FixtureRequest) -> Available:
    return binaries.available(request.param)


def test_from_event_to_recall(server, make_redis, make_settings, spawn):
    """G1 to G4, G9: published, logged, applied, committed, and warm when it is asked for."""
    redis = make_redis(binary=server.path, appendonly="yes")
    settings = make_settings(
        url=redis.url, recall_wait=5.0, recall_timeout=10.0, **recorded("Transactional")
    )
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 20)
        assert bus.flush("logged", 25), bus.problem
        wait_applied(redis.client(), settings)
        session.queue_prefetch("what was turn 7")
        wait_until(lambda: "turn 7" in session.prefetch(), "the recall is warm")
    assert child.terminate() == 0, child.output()
    assert texts(home(settings)) == numbered(20)


def test_tools_see_the_progress(server, make_redis, make_settings):
    """G3: the mirror for other tools says how far a lane is, and its lag where that is counted."""
    redis = make_redis(binary=server.path)
    settings = make_settings(url=redis.url, **recorded("Keyed"))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        publish(bus.session("s", warm=False), 0, 20)
        assert bus.flush("logged", 25), bus.problem
        wait_applied(redis.client(), settings)
        stream = Keys(settings.namespace).log(partition(settings, "s"))
        last = redis.client().xinfo_stream(stream)["last-generated-id"]
        wait_until(
            lambda: _group(redis, stream)["last-delivered-id"] == last, "the mirror is there"
        )
        group = _group(redis, stream)
    assert group["name"] == NAME.encode()
    assert group.get("lag") == (0 if server.version >= (7, 0, 0) else None)


def _group(redis: Any, stream: str) -> dict[str, Any]:
    (group,) = redis.client().xinfo_groups(stream) or [{}]
    return dict(group)


@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_a_killed_server_loses_nothing(server, fsync, make_redis, make_settings, spawn):
    """G1, G3: with either policy of the append-only file, kill -9 under load costs nothing."""
    redis = make_redis(binary=server.path, appendonly="yes", appendfsync=fsync)
    settings = make_settings(url=redis.url, spool_keep=60.0, **recorded("Transactional"))
    turns = 600
    with thread_worker(settings):
        child = agent(spawn, settings, "--count", turns, "--flush", 40)
        wait_until(lambda: texts(home(settings)), "events flow")
        redis.restart()
        assert child.wait(60) == 0, child.output()
        assert numbers(child.output()) == list(range(turns))
        assert "\nflushed" in child.output()
        wait_until(lambda: len(texts(home(settings))) >= turns, "all are applied", 30)
    assert texts(home(settings)) == [f"turn {number:05d}" for number in range(turns)]


@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_replicated_without_a_replica(server, fsync, make_redis, make_settings):
    """G1: a synced append-only file counts where the server can confirm it (7.2), else nothing."""
    redis = make_redis(binary=server.path, appendonly="yes", appendfsync=fsync)
    with MemoryBus.connect(make_settings(url=redis.url)) as bus:
        publish(bus.session("s", warm=False), 0, 5)
        assert bus.flush("logged", 25), bus.problem
        confirms = _can(server, (7, 2, 0))
        assert bus.flush("replicated", 10 if confirms else 0.5) is confirms


def test_replicated_with_a_replica_on(server, make_redis, make_settings):
    """G1: on every server a replica's word is taken, and its silence is told."""
    master, replica = with_replica(make_redis, binary=server.path)
    with MemoryBus.connect(make_settings(url=master.url)) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 5)
        assert bus.flush("replicated", 25), bus.problem
        replica.freeze()
        publish(session, 5, 5)
        assert bus.flush("logged", 25), bus.problem
        assert not bus.flush("replicated", 0.5)
        replica.thaw()
        assert bus.flush("replicated", 25), bus.problem


def test_an_evicting_server_is_refused_on(server, make_redis, make_settings):
    """G1: a server that may drop events is refused at the start, with the remedy."""
    redis = make_redis(binary=server.path, maxmemory_policy="allkeys-lru")
    settings = make_settings(url=redis.url)
    client = connect_redis(settings)
    with pytest.raises(UnsafeRedis, match="config set maxmemory-policy noeviction"):
        EventLog(client, settings).open()
    client.close()


@pytest.mark.parametrize("kind", ["Keyed", "Transactional"])
def test_a_full_server_is_drained(server, kind, make_redis, make_settings):
    """G1, G4: without memory workers apply and commit, publishers hear why, and none does twice."""
    redis = make_redis(binary=server.path, appendonly="yes")
    timings = {"lease": 30.0, "call_timeout": 20.0}  # a lease lost on the way would do all again
    settings = make_settings(url=redis.url, partitions=2, **timings, **recorded(kind))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 200)
        assert bus.flush("logged", 25), bus.problem
        redis.client().config_set("maxmemory", "1")
        publish(session, 200, 10)
        wait_until(lambda: "maxmemory" in bus.problem, "the publisher hears why")
        for _ in range(2):  # the second finds the marks of the first
            with thread_worker(settings):
                wait_until(lambda: len(texts(home(settings))) >= 200, "it is drained")
                wait_applied(redis.client(), settings)
        assert calls(home(settings)).count("turn 7") == 1, "what is done is marked as done"
        redis.client().config_set("maxmemory", "0")
        assert bus.flush("logged", 25), bus.problem
    with thread_worker(settings):
        wait_until(lambda: len(texts(home(settings))) >= 210, "the rest is applied")
    assert texts(home(settings)) == numbered(210)


def _can(server: Available, since: tuple[int, int, int]) -> bool:
    """Whether a server has what came with a release of Redis; Valkey has all of 7.2."""
    return server.name.startswith("valkey") or server.version >= since
