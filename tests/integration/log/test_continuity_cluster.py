"""The health of a log that is spread over the shards of a Redis Cluster."""

from collections.abc import Iterator

import pytest
from helpers.making import MakeSettings
from helpers.redis.clusters import RedisCluster, running
from helpers.redis.log import Log
from memorybus.log.continuity import Gap
from memorybus.redis.cluster import Cluster
from memorybus_workers.watch.watch import POLL_SECONDS, LogWatch


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RedisCluster]:
    cluster = RedisCluster()
    with running(cluster):
        yield cluster


@pytest.fixture(name="log")
def _log(cluster: RedisCluster, make_settings: MakeSettings) -> Iterator[Log]:
    log = Log(make_settings(url=cluster.url, jobs_url="redis://127.0.0.1:1"))
    yield log
    log.client.close()


def test_a_gap_on_a_shard_is_named(log):
    """G7: partitions are looked at on their shards, in one round trip, and their gaps named."""
    log.append(10)
    assert log.examine().alarms == []
    log.client.xtrim(log.key, maxlen=4, approximate=False)
    assert log.gaps() == [Gap(Log.PARTITION, 1, 6, 6)]


def test_every_shard_is_asked(cluster, log):
    """G1, G10: a policy changed on one shard is told, and the fullest memory counts."""
    client = cluster.shards[-1].client()
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("maxmemory", int(client.info("memory")["used_memory"] * 1.02))
    found = log.examine()
    client.config_set("maxmemory", 0)
    client.config_set("maxmemory-policy", "noeviction")
    assert {alarm.code for alarm in found.alarms} == {"eviction_policy", "memory"}
    assert found.memory.limit_from == "maxmemory"


def test_a_wiped_shard_is_told(log, fake_clock):
    """G1: a shard that lost everything but the certificate is seen by its partitions."""
    watch = LogWatch(log.settings, fake_clock)
    log.append(10)
    for _ in range(2 * round((log.settings.spool_keep + POLL_SECONDS) / POLL_SECONDS + 1)):
        fake_clock.advance(POLL_SECONDS)
        watch.poll(log.client)
    certificate = log.client.hgetall(log.keys.meta)
    assert isinstance(log.client, Cluster)
    log.client.client_for_key(log.key).flushall()
    log.client.hset(log.keys.meta, mapping=certificate)  # in case it lay on the same shard
    fake_clock.advance(POLL_SECONDS)
    watch.poll(log.client)
    assert [alarm.code for alarm in watch.alarms] == ["data_loss"]
    (gap,) = log.gaps()
    assert (gap.partition, gap.first, gap.last, gap.missing) == (Log.PARTITION, 1, 10, 10)
    assert gap.record.startswith("tail:")
