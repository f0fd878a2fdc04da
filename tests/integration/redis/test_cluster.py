"""The log on a Redis Cluster: lanes across shards, moved slots, lost shards (G1 to G5)."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import effects, state_digest, texts
from helpers.redis.clusters import RedisCluster, lengths, running
from helpers.redis.log import logged
from helpers.redis.servers import RedisServer
from helpers.stories.rebuilding import NEXT, drop, frozen, ran, swap
from helpers.stories.replaying import replay
from helpers.stories.scenario import (
    NAME,
    agent,
    home,
    numbers,
    partition,
    recorded,
    spread_sessions,
    thread_worker,
    wait_applied,
    worker,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import UnsafeRedis
from memorybus.health.monitor import read_status
from memorybus.log.stream import START, EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.registry.instances import live_name
from memorybus.registry.rebuild_lock import RebuildRuns
from memorybus_console.operations.doctor.doctor import examine
from memorybus_console.operations.stores import Stores

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]  # half a minute on a busy machine

Run = Callable[..., RedisCluster]


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RedisCluster]:
    cluster = RedisCluster()
    with running(cluster):
        yield cluster


@pytest.fixture(name="on_cluster")
def _on_cluster(
    cluster: RedisCluster, redis_server: RedisServer, make_settings: MakeSettings
) -> Settings:
    return make_settings(url=cluster.url, jobs_url=redis_server.url, **recorded("Transactional"))


@pytest.fixture(name="own_cluster")
def _own_cluster() -> Iterator[Run]:
    """Start clusters of this test's own, for what breaks them."""
    with ExitStack() as held:

        def run(replicas: int = 0) -> RedisCluster:
            cluster = RedisCluster(replicas=replicas)
            held.enter_context(running(cluster))
            return cluster

        yield run


def publish(bus: MemoryBus, names: list[str], first: int, count: int) -> None:
    """Publish numbered turns to some sessions, in turn."""
    for number in range(first, first + count):
        for name in names:
            bus.session(name, warm=False).turn_completed(f"{name} {number}", "ok", ordinal=number)


def assert_once_in_order(
    settings: Settings, names: list[str], count: int, instance: str = NAME
) -> None:
    """Fail unless each session's turns are applied, once, in order."""
    found = texts(home(settings, instance))
    for name in names:
        mine = [text for text in found if text.startswith(f"{name} ")]
        assert mine == [f"{name} {number}" for number in range(count)]
    assert len(found) == count * len(names)


def wait_for(settings: Settings, count: int, timeout: float = 40) -> None:
    """Wait until so many turns are applied."""
    wait_until(lambda: len(texts(home(settings))) >= count, f"{count} are applied", timeout)


# -- at work --------------------------------------------------------------------------------------


def test_lanes_run_across_shards(cluster, on_cluster):
    """G3, G4: what is published is on every shard, and is applied once, in order."""
    names = spread_sessions(on_cluster, 8)
    with thread_worker(on_cluster), MemoryBus.connect(on_cluster) as bus:
        publish(bus, names, 0, 10)
        assert bus.flush("logged", 10), bus.problem
        client = connect_redis(on_cluster)
        wait_applied(client, on_cluster)
        client.close()
    assert_once_in_order(on_cluster, names, 10)
    assert all(lengths(cluster.shards, f"{on_cluster.namespace}:*:log"))


def test_status_and_doctor_know_a_cluster(on_cluster, capsys):
    """G9: what people ask works on a cluster, and names every shard as one log."""
    with thread_worker(on_cluster), MemoryBus.connect(on_cluster) as bus:
        publish(bus, ["s"], 0, 5)
        assert bus.flush("logged", 10), bus.problem
        wait_for(on_cluster, 5)
        status = read_status(on_cluster)
        checks = {check.name: check for check in examine(on_cluster)}
    assert (status.providers[0].applied, status.providers[0].backlog) == (5 + 1, 0)
    assert status.redis.durability == "aof:everysec"
    assert len(status.workers) == 1
    assert checks["redis"].ok
    assert checks["eviction policy"].ok
    assert checks["log"].ok


def test_what_one_shard_lost_is_sent_again_before_a_flush_is_answered(cluster, on_cluster):
    """G1: a flush is answered by what each shard has then; connections may live on over a loss."""
    settings = msgspec.structs.replace(on_cluster, spool_keep=300.0)
    names = spread_sessions(settings, 8)
    with MemoryBus.connect(settings) as bus:
        publish(bus, names, 0, 10)
        assert bus.flush("logged", 25), bus.problem
        counts = lengths(cluster.shards, f"{settings.namespace}:*:log")
        cluster.shard_of(
            Keys(settings.namespace).log(partition(settings, names[0]))
        ).client().flushall()
        assert bus.flush("logged", 25), bus.problem
        assert lengths(cluster.shards, f"{settings.namespace}:*:log") == counts


def test_one_evicting_shard_is_refused(cluster, on_cluster):
    """G1: a log of which one shard may drop events is refused, with the remedy."""
    client = cluster.shards[2].client()
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        redis = connect_redis(on_cluster)
        with pytest.raises(UnsafeRedis, match="noeviction"):
            EventLog(redis, on_cluster).open()
        redis.close()
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_recall_is_warm_on_a_cluster(on_cluster, spawn):
    """G9: requests and results lie on the cluster, the jobs between them on a plain Redis."""
    settings = msgspec.structs.replace(on_cluster, recall_wait=20.0, recall_timeout=30.0)
    child = worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("the harbour opens at six", "ok")
        session.queue_prefetch("when does the harbour open")
        wait_until(lambda: "six" in session.prefetch(), "the recall is warm", 40)
        assert "six" in bus.recall("harbour", timeout=15).text
    assert child.terminate() == 0


def test_news_are_told_at_once(cluster, on_cluster):
    """G9: whoever follows the log hears of an event on any shard, and of its partition only."""
    redis = connect_redis(on_cluster)
    log = EventLog(redis, on_cluster)
    places = dict.fromkeys(range(on_cluster.partitions), START)
    assert log.wait(places, 0.01) == {}
    with MemoryBus.connect(on_cluster) as bus:
        names = spread_sessions(on_cluster, 3)
        publish(bus, names, 0, 1)
        assert bus.flush("logged", 10)
    news = log.wait(places, 5)
    assert set(news) == {partition(on_cluster, name) for name in names}
    assert all(log.has_entry(partition, entry) for partition, entry in news.items())
    redis.close()


def test_copies_are_filled_and_swapped_across_shards(on_cluster, spawn):
    """G8: a replay, a rebuild and its drop on a cluster: equal states, and nothing left behind."""
    names = spread_sessions(on_cluster, 8)
    child = worker(spawn, on_cluster, jobs=1)
    with MemoryBus.connect(on_cluster) as bus:
        publish(bus, names, 0, 10)
        assert bus.flush("logged", 10), bus.problem
        wait_for(on_cluster, 80)
        assert replay(on_cluster).applied == 8 * 11
        assert state_digest(home(on_cluster, "copy")) == state_digest(home(on_cluster))
        session = bus.session(names[0], warm=False)
        session.queue_prefetch(f"{names[0]} 3")
        wait_until(session.prefetch, "a recall is warm", 20)
        done = ran(spawn, on_cluster, "rebuild", NAME, "--yes")
        assert (done["live"], done["compared"]["keys"]) == (f"{NAME}@1", 8)
        assert done["purged"] >= 1
        publish(bus, names, 10, 5)
        assert bus.flush("logged", 10), bus.problem
    ran(spawn, on_cluster, "rebuild", "--drop", NAME, "--yes")
    with Stores(on_cluster) as stores:
        assert stores.lanes.count_remaining(NAME) == 0
    client = connect_redis(on_cluster)
    wait_applied(client, on_cluster, f"{NAME}@1")
    client.close()
    assert_once_in_order(on_cluster, names, 15, f"{NAME}@1")
    assert child.terminate() == 0


def test_a_command_that_lost_its_lock_changes_nothing_across_shards(on_cluster):
    """G8: on a cluster, too, a rebuild frozen before its swap does not undo another's drop."""
    with pytest.raises(RebuildRuns, match="was suspended for over"):
        swap(on_cluster, NEXT, "rebuild", frozen(on_cluster, partial(drop, on_cluster)))
    with Stores(on_cluster) as stores:
        assert live_name(NAME, stores.instances.live()) == NAME
        assert stores.instances.all()[NEXT].dropped


# -- when it moves --------------------------------------------------------------------------------


def test_a_slot_moves_under_the_load(own_cluster, redis_server, make_settings):
    """G2, G3: while a partition moves to another shard its events wait, and none is lost."""
    cluster = own_cluster()
    settings = make_settings(
        url=cluster.url, jobs_url=redis_server.url, partitions=4, **recorded("Transactional")
    )
    names = spread_sessions(settings, 4)
    key = Keys(settings.namespace).log(partition(settings, names[0]))
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        publish(bus, names, 0, 20)
        wait_for(settings, 80)
        with cluster.moving(key):
            publish(bus, names, 20, 20)
            assert not bus.flush("logged", 0.5), "its events wait while the slot is between two"
        assert bus.flush("logged", 20), bus.problem
        wait_for(settings, 160)
    assert_once_in_order(settings, names, 40)


# -- when it breaks -------------------------------------------------------------------------------


def test_a_worker_and_a_shard_die_under_load(own_cluster, redis_server, make_settings, spawn, flag):
    """G1 to G5: a killed worker and a killed shard, which comes back, lose and double nothing."""
    cluster = own_cluster()
    settings = make_settings(
        url=cluster.url,
        jobs_url=redis_server.url,
        lease=1.0,
        call_timeout=0.5,
        spool_keep=60.0,
        **recorded("Transactional"),
    )
    turns = 4_000
    workers = [worker(spawn, settings), worker(spawn, settings)]
    agents = [
        agent(
            spawn, settings, "--session", f"s{n}", "--count", turns, "--flush", 60, "--gate", flag
        )
        for n in range(3)
    ]
    wait_until(lambda: texts(home(settings)), "events flow", 20)
    workers[0].kill()
    cluster.shards[1].kill()
    flag.unlink()  # half of them at least come while the shard is dead
    wait_until(lambda: cluster.says_down(0), "the others miss the shard", 20)
    cluster.shards[1].start()
    for child in agents:
        assert child.wait(90) == 0, child.output()
        assert "\nflushed" in child.output(), child.output()[-300:]
        assert numbers(child.output()) == list(range(turns))
    wait_for(settings, 3 * turns, 60)
    by_session: dict[str, list[str]] = defaultdict(list)
    for effect in effects(home(settings)):
        by_session[effect.session].append(effect.text)
    expected = [f"turn {number:05d}" for number in range(turns)]
    assert by_session == {f"s{n}": expected for n in range(3)}


def shown_replicas(cluster: RedisCluster) -> int:
    """Return how many replicas the map of slots shows: those that have not failed."""
    ranges = cluster.shards[0].client(protocol=2).execute_command("CLUSTER", "SLOTS")
    return len({entry[3][1] for entry in ranges if len(entry) > 3})


def test_a_replica_takes_over(own_cluster, redis_server, make_settings):
    """G1, G2: a shard whose replica took over is found again; what it lost comes again."""
    cluster = own_cluster(replicas=1)
    settings = make_settings(
        url=cluster.url,
        jobs_url=redis_server.url,
        lease=1.0,
        call_timeout=0.5,
        spool_keep=60.0,
        **recorded("Transactional"),
    )
    names = spread_sessions(settings, 6)
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        publish(bus, names, 0, 20)
        assert bus.flush("replicated", 10), bus.problem
        cluster.replicas[0].freeze()
        cluster.shards[0].client().execute_command("CLIENT", "KILL", "TYPE", "replica")
        publish(bus, names, 20, 20)
        assert bus.flush("logged", 10), bus.problem
        assert not bus.flush("replicated", 0.5), "a replica of one shard is behind"
        wait_until(lambda: shown_replicas(cluster) == 2, "the frozen replica has failed", 20)
        assert not bus.flush("replicated", 0.5), "it may come back and take over"
        wait_for(settings, 240)
        cluster.shards[0].kill()
        cluster.replicas[0].thaw()
        wait_until(
            lambda: cluster.replicas[0].client().info("replication")["role"] == "master",
            "the replica took over",
            20,
        )
        publish(bus, names, 40, 20)
        assert bus.flush("logged", 30), bus.problem
        wait_for(settings, 360)
        (shown,) = wait_until(lambda: read_status(settings).workers, "the worker shows itself")
        wait_until(
            lambda: read_status(settings).workers[0].heartbeat_at > shown.heartbeat_at,
            "the worker shows itself again",
        )
    assert sum(one.resent for one in logged(settings)) >= 20, "what the shard lost was found"
    assert_once_in_order(settings, names, 60)


def test_replies_come_from_any_shard(cluster, redis_server, make_settings, spawn):
    """A reply lies with its event's partition: tools and contributions work across shards."""
    tooled = {
        "providers": (NAME,),
        "provider": {NAME: {"kind": "helpers.providers.tooling:NotingOnce"}},
    }
    settings = make_settings(url=cluster.url, jobs_url=redis_server.url, **tooled)
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        wait_until(lambda: bus.tools().named("note_add"), "the tools are noted", 20)
        for name in spread_sessions(settings, 5):
            session = bus.session(name, warm=False)
            assert session.call_tool("note_add", {"text": name}, timeout=20)["noted"] == name
            assert session.call_tool("note_find", {"text": name}, timeout=20)["found"] == [name]
            kept = session.contributions([{"role": "user", "content": "x"}], timeout=20)
            assert kept == f"From {NAME}:\nkept 1 {{lt}}messages{{gt}}"
