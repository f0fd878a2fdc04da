"""The log on a real server: its birth, its refusals, and what others write under our names."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.scenario import (
    home,
    partition,
    recorded,
    spread_sessions,
    thread_worker,
    wait_applied,
)
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import (
    ForeignKey,
    InvalidEvent,
    LogError,
    LogUnavailable,
    UnsafeRedis,
    WrongPartitionCount,
)
from memorybus.health.monitor import read_status
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys


@pytest.fixture(name="log")
def _log(settings: Settings) -> Iterator[EventLog]:
    client = connect_redis(settings)
    yield EventLog(client, settings)
    client.close()


def test_a_log_is_born_with_its_partition_count(log, redis_client, make_settings):
    """G3: another partition count is refused, because keys would change their partition."""
    log.open()
    log.open()
    meta = Keys(log.keys.namespace).meta
    written = redis_client.hgetall(meta)
    assert len(written.pop(b"log")) == 32
    assert written == {b"partitions": b"16", b"format": b"1"}
    other = make_settings(partitions=8)
    with pytest.raises(WrongPartitionCount, match=r"has 16 partitions.*`partitions = 16`"):
        EventLog(connect_redis(other), other).open()


def test_a_birth_certificate_that_is_not_ours(log, redis_client):
    """G10: garbage in the birth certificate is a clear error of the bus, not a crash."""
    redis_client.hset(log.keys.meta, "partitions", "many")
    with pytest.raises(LogError, match="many"):
        log.open()
    redis_client.delete(log.keys.meta)
    redis_client.set(log.keys.meta, "theirs")
    with pytest.raises(ForeignKey, match=log.keys.meta):
        log.open()
    redis_client.delete(log.keys.meta)


def test_an_evicting_server_is_refused(make_redis, make_settings):
    """G1: a server that may drop keys is refused with the command that repairs it."""
    server = make_redis(maxmemory_policy="allkeys-lru")
    settings = make_settings(url=server.url)
    log = EventLog(connect_redis(settings), settings)
    with pytest.raises(UnsafeRedis, match="config set maxmemory-policy noeviction"):
        log.open()
    server.client().config_set("maxmemory-policy", "noeviction")
    assert log.open().policy == "noeviction"


def test_a_publisher_waits_for_a_safe_server(make_redis, make_settings):
    """G1, G9: on an evicting server events stay spooled, the reason is shown, and later they go."""
    server = make_redis(maxmemory_policy="allkeys-lru")
    with MemoryBus.connect(make_settings(url=server.url)) as bus:
        bus.session("s", warm=False)
        wait_until(lambda: "allkeys-lru" in bus.problem, "the problem is named")
        assert not list(server.client().scan_iter("*log"))
        server.client().config_set("maxmemory-policy", "noeviction")
        assert bus.flush("logged", 25)
        assert bus.problem == ""


def test_no_answer_is_log_unavailable(make_settings):
    """G9: a server that is not there is told as such, with its address."""
    settings = make_settings(url="redis://:secret@127.0.0.1:1/0")
    with pytest.raises(LogUnavailable) as raised:
        EventLog(connect_redis(settings), settings).open()
    assert "127.0.0.1:1" in str(raised.value)
    assert "secret" not in str(raised.value)


FOREIGN_ENTRIES: list[dict[str, bytes]] = [
    {"foo": b"bar"},
    {"n": b"1"},
    {"e": b"\x80"},
    {"n": b"x", "e": b"\xc1"},
    {"n": b"", "e": b""},
    {"n": b"-3", "e": b"x" * 4_000},
    {"n": b"1" + b"0" * 30, "e": b"junk"},
    {"n": b"9" * 5_000, "e": b"junk"},
]


def test_foreign_entries_are_no_events(log, redis_client):
    """G6: whatever somebody adds to our stream is dropped, and what comes behind it is read."""
    for fields in FOREIGN_ENTRIES:
        redis_client.xadd(log.keys.log(0), fields)
    assert log.read(0) == []
    redis_client.xadd(log.keys.log(0), {"n": b"1", "e": b"\xc1"})
    assert [event.position.n for event in log.read(0, count=2)] == [1]


@pytest.mark.parametrize("kind", ["Transactional", "Blind"])
def test_foreign_entries_stop_nothing(redis_client, make_settings, kind):
    """G6: foreign entries among ours are passed over and told of; our events are applied."""
    settings = make_settings(partitions=1, **recorded(kind))
    keys = Keys(settings.namespace)
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("one", "ok")
        assert bus.flush(timeout=25)
        for fields in FOREIGN_ENTRIES:
            redis_client.xadd(keys.log(0), fields)
        session.turn_completed("two", "ok")
        wait_until(lambda: texts(home(settings)) == ["one", "two"], "ours are applied")
    assert not redis_client.exists(keys.dead(0, "rec"))
    status = read_status(settings)
    assert status.providers[0].backlog == 0
    (alarm,) = [alarm for alarm in status.alarms if alarm.code == "foreign_entries"]
    assert f"{len(FOREIGN_ENTRIES)} entries" in alarm.text


def test_a_future_event_is_parked_with_its_bytes(redis_client, make_settings):
    """G6: an event of an unknown type or a newer version is parked and stays in the log."""
    settings = make_settings(partitions=1, **recorded("Transactional"))
    keys = Keys(settings.namespace)
    base: dict[str, Any] = {"scope": {}, "session": {"id": "s", "root": "s"}, "at": 1}
    future = [
        base | {"id": "0" * 31 + "1", "key": "session:a", "event": {"type": "Dreamt"}},
        base
        | {"id": "0" * 31 + "2", "key": "session:b", "v": 9, "event": {"type": "TurnCompleted"}},
    ]
    for n, envelope in enumerate(future, 1):
        redis_client.xadd(keys.log(0), {"n": n, "e": msgspec.msgpack.encode(envelope)})
    redis_client.hset(keys.state(0), "n", 2)
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        bus.session("c", warm=False).turn_completed("mine", "ok")
        assert bus.flush(timeout=25)
        wait_applied(redis_client, settings)
    assert texts(home(settings)) == ["mine"]
    parked = redis_client.hkeys(keys.parked(0, "rec"))
    assert sorted(parked) == [b"session:a", b"session:b"]
    records: Any = redis_client.xrange(keys.dead(0, "rec"))
    assert [b"upgrade" in fields[b"r"] for _, fields in records] == [True, True]
    assert redis_client.xlen(keys.log(0)) == 4


@pytest.mark.parametrize("which", ["log", "state", "producers", "lane", "parked"])
def test_a_foreign_key_stops_only_its_partition(redis_client, make_settings, which):
    """G6: with somebody else's value at a key of one partition, the other partitions go on."""
    settings = make_settings(**recorded("Transactional"))
    keys = Keys(settings.namespace)
    bad, good = spread_sessions(settings, 2)
    at = partition(settings, bad)
    name = {
        "log": keys.log(at),
        "state": keys.state(at),
        "producers": keys.producers(at),
        "lane": keys.lane(at, "rec"),
        "parked": keys.parked(at, "rec"),
    }[which]
    redis_client.set(name, "theirs")
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        bus.session(bad, warm=False).turn_completed("held up", "ok")
        bus.session(good, warm=False).turn_completed("free", "ok")
        wait_until(lambda: "free" in texts(home(settings)), "the other partition goes on")
        assert redis_client.get(name) == b"theirs"
        assert read_status(settings).providers[0].name == "rec"
        redis_client.delete(name)
        wait_until(lambda: "held up" in texts(home(settings)), "the partition goes on too")
    assert sorted(texts(home(settings))) == ["free", "held up"]


def test_status_survives_impossible_times(redis_client, make_settings):
    """G10: an entry of an impossible time does not stop the status; an event of one is refused."""
    settings = make_settings(partitions=1, **recorded("Blind"))
    keys = Keys(settings.namespace)
    redis_client.xadd(keys.log(0), {"n": 1, "e": b"x"}, id=f"{(1 << 64) - 2}-0")
    redis_client.hset(keys.state(0), "n", 1)
    assert read_status(settings).providers[0].backlog == 1
    with MemoryBus.connect(settings) as bus, pytest.raises(InvalidEvent, match="year 9999"):
        bus.session("s", warm=False, at=10**18)


def test_any_client_reads_the_log(settings, redis_client, log):
    """G3: how a client was made does not decide what is read through it."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("hello", "ok")
        assert bus.flush("logged", 25)
    where = partition(settings, "s")
    for client in (redis_client, redis.Redis(**_address(redis_client), protocol=3)):
        found = EventLog(client, settings).read(where)
        assert found == log.read(where)
        assert [type(event.envelope.event).__name__ for event in found] == [
            "SessionStarted",
            "TurnCompleted",
        ]
        client.close()


def _address(client: redis.Redis) -> dict[str, Any]:
    return {"unix_socket_path": client.connection_pool.connection_kwargs["path"]}
