"""The client of a cluster takes the commands of one server, and answers as one server does."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.redis.clusters import RedisCluster, running
from memorybus.config.settings import Settings
from memorybus.redis import scripts
from memorybus.redis.cluster import group_by_shard
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import RedisError, ResponseError

PARTITIONS = range(16)


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[RedisCluster]:
    cluster = RedisCluster()
    with running(cluster):
        yield cluster


@pytest.fixture(name="settings")
def _settings(cluster: RedisCluster, make_settings: MakeSettings) -> Settings:
    return make_settings(url=cluster.url, jobs_url="redis://nowhere")


@pytest.fixture(name="client", params=[False, True], ids=["pooled", "single"])
def _client(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Any]:
    client = connect_redis(settings, single=request.param)
    yield client
    client.close()


@pytest.fixture(name="keys")
def _keys(settings: Settings) -> Keys:
    return Keys(settings.namespace)


def test_replies_stand_where_their_commands_stood(client, keys):
    """G2: one round trip over all shards answers in order; a refusal stands in its own place."""
    client.set(keys.lease(3, "a"), "a string")
    with client.pipeline(transaction=False) as pipe:
        for partition in PARTITIONS:
            pipe.hset(keys.state(partition), "n", partition)
        pipe.hget(keys.lease(3, "a"), "n")
        for partition in PARTITIONS:
            pipe.hget(keys.state(partition), "n")
        replies = pipe.execute(raise_on_error=False)
    assert replies[:16] == [1] * 16
    assert isinstance(replies[16], ResponseError)
    assert replies[17:] == [str(partition).encode() for partition in PARTITIONS]


def test_a_refusal_is_raised_if_wanted(client, keys):
    """G9: without `raise_on_error=False` the first refusal of a pipeline is an exception."""
    client.set(keys.lease(3, "b"), "a string")
    with client.pipeline(transaction=False) as pipe:
        pipe.hget(keys.lease(3, "b"), "n")
        with pytest.raises(ResponseError):
            pipe.execute()


def test_a_transaction_is_one_shards(client, keys):
    """G5: what is done together lies together; what does not is refused, and nothing is done."""
    with client.pipeline(transaction=True) as pipe:
        pipe.hset(keys.state(1), "x", "1")
        pipe.pexpire(keys.state(1), 60_000)
        assert pipe.execute() == [1, True]
    elsewhere = next(
        p for p in PARTITIONS if len(group_by_shard(client, [keys.log(1), keys.log(p)])) > 1
    )
    with client.pipeline(transaction=True) as pipe:
        pipe.hset(keys.state(1), "y", "1")
        pipe.hset(keys.state(elsewhere), "y", "1")
        with pytest.raises(RedisError):
            pipe.execute()
    assert client.hget(keys.state(1), "y") is None


def test_every_shard_knows_the_scripts(client, cluster, keys):
    """G2: scripts that a shard forgot are loaded again, and the calls repeated in order."""
    for shard in cluster.shards:
        shard.client().script_flush()
    calls = [scripts.write_fields(keys.state(p), {"z": str(p).encode()}) for p in PARTITIONS]
    assert not [reply for reply in scripts.run_many(client, calls) if isinstance(reply, Exception)]
    assert [client.hget(keys.state(p), "z") for p in PARTITIONS] == [
        str(p).encode() for p in PARTITIONS
    ]


def test_a_moving_key_is_followed(client, cluster, keys):
    """G3: a key on its way is asked for where it will be, and found where it went."""
    here, there = keys.state(5), keys.lease(5, "new")
    client.hset(here, "n", 1)
    with cluster.moving(here):
        client.set(there, "1")  # ASK: it is not in the old place
        assert client.get(there) == b"1"
        assert client.hget(here, "n") == b"1"
    assert client.hget(here, "n") == b"1"  # MOVED
    assert client.get(there) == b"1"


def test_a_transaction_heals_after_a_move(client, cluster, keys):
    """G9: a transaction that met a moved key fails once, and the next one finds it."""
    key = keys.state(9)
    client.hset(key, "n", 1)
    with cluster.moving(key):
        pass

    def transact() -> list[Any]:
        with client.pipeline(transaction=True) as pipe:
            pipe.hset(key, "n", 2)
            return list(pipe.execute())

    with pytest.raises(ResponseError):
        transact()
    assert transact() == [0]


def test_a_lost_shard_is_looked_for_again(cluster, client, keys):
    """G9: a shard that is away is an error at once, and serves again when it is back."""
    ours = [keys.state(p) for p in PARTITIONS]
    home = next(p for p in PARTITIONS if cluster.shard_of(ours[p]) is cluster.shards[2])
    cluster.shards[2].kill()
    with pytest.raises(RedisError):
        client.hget(ours[home], "n")
    with client.pipeline(transaction=False) as pipe:
        for key in ours:
            pipe.hget(key, "n")
        with pytest.raises(Unreachable):
            pipe.execute(raise_on_error=False)
    cluster.shards[2].start()
    cluster.wait_whole()
    client.hset(ours[home], "n", 7)
    assert client.hget(ours[home], "n") == b"7"
