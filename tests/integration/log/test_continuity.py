"""Whatever is done to the log behind our back is seen by the next look, on a real server."""

import threading
from collections.abc import Iterator

import msgspec
import pytest
import redis
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.redis.binaries import available
from helpers.redis.log import Log, read_health
from helpers.redis.servers import RedisServer
from memorybus.errors import LogUnavailable
from memorybus.health.log_health import Examiner
from memorybus.health.monitor import read_status
from memorybus.log.continuity import Gap
from memorybus.log.inspection import PAGE, PAGES
from memorybus.log.losses import Losses, lost_gap

P = Log.PARTITION


@pytest.fixture(name="log")
def _log(redis_server: RedisServer, make_settings: MakeSettings) -> Iterator[Log]:
    log = Log(make_settings(partitions=2))
    yield log
    log.client.close()


def gap(first: int, last: int) -> Gap:
    """Return a gap of the written partition."""
    return Gap(P, first, last, last - first + 1)


def test_a_whole_log_has_no_gap(log):
    """G7: an empty log, and one that only grew, lack nothing."""
    assert log.gaps() == []
    log.append(500)
    assert log.gaps() == []


def test_a_trimmed_stream_is_named(log):
    """G7: XTRIM by anybody is data loss, named from the first number to the last."""
    log.append(10)
    log.client.xtrim(log.key, maxlen=4, approximate=False)
    assert log.gaps() == [gap(1, 6)]
    log.client.xtrim(log.key, maxlen=0, approximate=False)
    assert log.gaps() == [gap(1, 10)]
    log.append(2)
    assert log.gaps() == [gap(1, 10)]


def test_what_is_sealed_may_be_trimmed(log):
    """G7: up to the number that is sealed nothing is missed, and everything above is."""
    log.append(10)
    log.client.hset(log.keys.state(P), "sealed", "4")
    log.client.xtrim(log.key, maxlen=6, approximate=False)
    assert log.gaps() == []
    log.client.xtrim(log.key, maxlen=5, approximate=False)
    assert log.gaps() == [gap(5, 5)]


def test_a_deleted_stream_is_named(log):
    """G7: a stream that is gone is missed by its counter, also after it grows again."""
    log.append(7)
    log.client.delete(log.key)
    assert log.gaps() == [gap(1, 7)]
    log.append(1)
    assert log.gaps() == [gap(1, 7)]


def test_deleted_entries_are_told_as_ranges(log):
    """G7: XDEL in the middle, at the end and at the beginning is told as ranges of numbers."""
    log.append(20)
    entries = [log.entry(n) for n in (1, 5, 6, 11, 20)]
    log.client.xdel(log.key, *entries)
    assert log.gaps() == [gap(1, 1), Gap(P, 5, 11, 3), gap(20, 20)]


def test_a_gap_on_record_is_shown_once(log):
    """G7: a gap that the log shows and a worker has recorded is one gap and one alarm."""
    log.append(9)
    log.client.xdel(log.key, log.entry(5))
    before = log.examine().continuity
    recorded = lost_gap("gap", before.log, before.gaps[0], "2026-01-01T00:00:00.000Z")
    Losses(log.client, log.keys).note([recorded])
    found = log.examine()
    assert (before.gaps, found.continuity.gaps) == ([gap(5, 5)], [recorded])
    assert len([alarm for alarm in found.alarms if alarm.code == "data_loss"]) == 1
    log.client.delete(log.keys.losses)


def test_entries_of_others_are_no_gap(log):
    """G6, G7: entries of others are told as such, wherever they stand, beside deletions, too."""
    log.client.xadd(log.key, {"foo": "bar"})
    log.append(6)
    log.client.xadd(log.key, {"n": "many", "e": "x"})
    found = log.examine()
    assert found.continuity.gaps == []
    assert {(a.code, a.subject) for a in found.alarms if a.code != "no_append_only_file"} == {
        ("foreign_entries", "p01")
    }
    fields: list[tuple[bytes, object]] = log.client.xrange(log.key)
    log.client.xdel(log.key, *(entry for entry, _ in fields[3:6]))
    assert log.gaps() == [gap(3, 5)]


def test_a_deletion_from_the_sealed_part_is_no_loss(log):
    """G7: what the archive has may be deleted from the log; what it lacks may not."""
    log.append(20)
    sealed = {"sealed": 10, "sealed_entry": log.entry(10)}
    log.client.hset(log.keys.state(P), mapping=sealed)
    archived, unsealed = [log.entry(4), log.entry(5)], log.entry(15)
    log.client.xdel(log.key, *archived)
    assert log.gaps() == []
    log.client.xdel(log.key, unsealed)
    assert log.gaps() == [gap(15, 15)]


def test_a_server_that_forbids_weighing_is_looked_at(make_redis, make_settings):
    """G10: where MEMORY is forbidden the gaps are told all the same."""
    log = Log(make_settings(url=make_redis().url, partitions=2))
    log.client.acl_setuser("default", commands=["-memory"], enabled=True, reset=False)
    log.append(10)
    log.client.xtrim(log.key, maxlen=4, approximate=False)
    found = log.examine()
    log.client.close()
    assert found.continuity.gaps == [gap(1, 6)]


def test_a_server_that_refuses_is_no_gap(make_redis, make_settings):
    """G10: a look that the server refuses raises its reason; nothing is judged from half of it."""
    log = Log(make_settings(url=make_redis().url, partitions=2))
    log.append(3)
    log.client.acl_setuser("default", commands=["-xrange"], enabled=True, reset=False)
    with pytest.raises(LogUnavailable, match=r"can't run this command|permission"):
        read_status(log.settings)
    log.client.close()


def test_a_gap_in_a_long_log_is_counted_at_once(log):
    """G10: a look reads a bounded number of entries; a gap behind these is told as a count."""
    total = PAGE * PAGES + 500
    for _ in range(total // 500):
        log.append(500, b"x")
    log.client.xdel(log.key, log.entry(total - 100))
    (found,) = log.gaps()
    assert (found.missing, found.last) == (1, total - 1)
    assert PAGE * PAGES <= found.first <= total - 100


def test_a_look_costs_the_same_however_long_the_log(log):
    """G10: one script for each partition, whether the log holds ten events or a thousand."""

    def calls() -> int:
        before = _count(log.client)
        Examiner(log.client, log.settings).examine()
        return _count(log.client) - before

    log.append(10)
    short = calls()
    log.append(990)
    assert calls() == short
    assert log.gaps() == []


def _count(client: redis.Redis) -> int:
    """Return how many reads of streams the server has done."""
    stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("xrange", "xrevrange"))


def test_a_look_while_events_come_raises_nothing(log):
    """G7: a partition is looked at in one moment, so that what arrives meanwhile is no gap."""
    stop = threading.Event()
    writer = Log(log.settings)

    def publish() -> None:
        while not stop.is_set():
            writer.append(20)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        examiner = Examiner(log.client, log.settings)
        found = [gap for _ in range(100) for gap in examiner.examine().continuity.gaps]
    finally:
        stop.set()
        thread.join()
        writer.client.close()
    assert found == []
    assert log.client.xlen(log.key) > 20


@pytest.mark.parametrize("counter", [{}, {"n": 3}])
def test_a_partition_without_its_counter_gives_no_number_again(log, counter):
    """G2: where the counter is gone or too low, the last entry has the last number."""
    log.append(5)
    log.client.delete(log.keys.state(P))
    if counter:
        log.client.hset(log.keys.state(P), mapping=counter)
    else:
        log.client.xadd(log.key, {"hello": "world"})
    log.append(2)
    entries = log.client.xrange(log.key)
    numbers = [int(fields[b"n"]) for _, fields in entries if b"n" in fields]
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert log.gaps() == []


def test_a_foreign_key_does_not_hide_the_others(log):
    """G10: a partition whose key is not ours is left out, and the others are looked at."""
    log.append(5)
    log.client.xtrim(log.key, maxlen=4, approximate=False)
    log.client.set(log.keys.log(0), "theirs")
    assert log.gaps() == [gap(1, 1)]
    log.client.delete(log.keys.log(0))


def test_the_limit_is_maxmemory(make_redis, make_settings):
    """G10: a server near its maxmemory is a critical alarm at any rate; the limit is named."""
    server = make_redis(appendonly="yes")
    log = Log(make_settings(url=server.url, partitions=2))
    found = log.examine()
    assert found.memory.limit_from == "available"
    assert found.alarms == []
    # So much that the buffers of connections, which come and go, are no part of it that matters.
    log.client.set("filler", bytes(20_000_000), px=600_000)

    def settled() -> int:
        used = int(log.client.info("memory")["used_memory"])
        return used if used < 25_000_000 else 0

    # Until then, the filler lies also in the buffers of its connection and of the file.
    used = wait_until(settled, "the server holds the filler once")
    log.client.config_set("maxmemory", int(used * 1.02))
    found = log.examine()
    log.client.close()
    assert found.memory.limit_from == "maxmemory"
    assert [(a.code, a.severity) for a in found.alarms] == [("memory", "critical")]


def test_a_look_works_when_redis_is_full(make_redis, make_settings):
    """G10: looking needs no memory of Redis: a full one can be looked at."""
    log = Log(make_settings(url=make_redis().url, partitions=2))
    log.append(20)
    log.client.config_set("maxmemory", 1)
    log.client.script_flush()  # a failover forgets scripts
    found = log.examine()
    log.client.close()
    assert found.continuity.gaps == []
    assert "memory" in {alarm.code for alarm in found.alarms}


def test_a_burst_on_a_redis_with_room_is_no_alarm(make_redis, make_settings):
    """G10: however fast events come, a Redis that is a tenth full is well."""
    log = Log(make_settings(url=make_redis(appendonly="yes").url, partitions=2))
    for _ in range(50):
        log.append(1_000, b"x" * 300)
    used = int(log.client.info("memory")["used_memory"])
    log.client.config_set("maxmemory", used * 10)
    found = log.examine()
    log.client.close()
    assert found.alarms == []


def test_the_status_shows_what_is_missing(log):
    """G7: `status --json` carries the gaps in their stable shape, and an alarm for each."""
    log.append(5)
    log.client.xtrim(log.key, maxlen=2, approximate=False)
    status = msgspec.json.decode(msgspec.json.encode(read_status(log.settings)))
    assert status["continuity"]["gaps"] == [
        {"partition": P, "first": 1, "last": 3, "missing": 3, "record": "", "found_at": None}
    ]
    (alarm,) = [one for one in status["alarms"] if one["code"] == "data_loss"]
    assert alarm["severity"] == "critical"
    assert alarm["text"] == "partition p01: events 1 to 3 are gone"


def test_failed_writes_of_redis_are_told(make_settings):
    """G1: an append-only file on a full disk is a critical alarm before anybody asks why."""
    # From Redis 7 on the file is many, which cannot be put on a full disk so simply.
    server = RedisServer(binary=available("redis-6.2").path, appendonly="yes")
    (server.directory / "appendonly.aof").symlink_to("/dev/full")
    try:
        server.start()
        server.client().set("x", "y")
        found = read_health(make_settings(url=server.url, partitions=2))
    finally:
        server.remove()
    assert [(a.code, a.severity, a.subject) for a in found.alarms] == [
        ("persistence", "critical", "aof")
    ]


def test_a_failed_snapshot_is_told(make_redis, make_settings):
    """G1: a snapshot that cannot be written makes Redis refuse writes, and is told as such."""
    server = make_redis(appendonly="yes")
    log = Log(make_settings(url=server.url, partitions=2))
    (server.directory / "dump.rdb").mkdir()  # in the way
    log.client.bgsave()
    wait_until(lambda: [a.subject for a in log.examine().alarms] == ["snapshot"], "it is told")
    log.client.close()
