"""Sealing and trimming a log that is spread over the shards of a Redis Cluster."""

from helpers.archive.sealed_log import QUICK, SealedLog
from helpers.redis.clusters import RedisCluster, running
from memorybus_workers.archiving.archiver import run_once


def test_a_partition_is_sealed_on_its_shard(make_settings):
    """G7: what a seal writes lies in one slot, whichever shard has the partition."""
    cluster = RedisCluster()
    with running(cluster):
        settings = make_settings(url=cluster.url, jobs_url="redis://127.0.0.1:1", **QUICK)
        log = SealedLog(settings)
        log.append(120)
        assert run_once(settings).events == 120
        assert log.logged() == [120]
        log.assert_whole()
        log.redis.close()
