"""Finds out whether written events would survive the loss of the server that took them (G1)."""

from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import ResponseError

from memorybus.redis.cluster import Shard, group_by_shard
from memorybus.redis.connect import redis_errors
from memorybus.redis.keys import Keys

_REPLICA_WAIT_MS = 50
_SYNC_MS = 2_000
"""The file is synced once a second by default: a shorter wait would never be answered."""


class Replication:
    """Asks the servers of a log what their replicas or files have. Belongs to one thread.

    Redis answers for what the asking connection wrote, and for all that its server took before
    that. So each question is sent together with a write: for a fresh connection, which has written
    nothing, the answer would mean nothing. `Sender.confirm` checks afterwards that the server still
    had everything.
    """

    def __init__(self, redis: Redis, keys: Keys, partitions: int, producer: str) -> None:
        self._redis = redis
        self._states = [keys.state(partition) for partition in range(partitions)]
        self._producer = producer

    def is_confirmed(self, timeout: float) -> bool:
        """Return whether each server's replica, or its synced append-only file, has everything."""

        def ask(shards: list[Shard]) -> bool:
            wait = max(1, round(timeout * 1000 / len(shards)))
            return all(self._is_shard_confirmed(shard, wait) for shard in shards)

        return self._ask_shards(ask)

    def _is_shard_confirmed(self, shard: Shard, wait: int) -> bool:
        try:
            replicas = int(shard.redis.info("replication").get("connected_slaves", 0))
            if replicas or shard.fails_over():
                return int(self._write_and_ask(shard, lambda pipe: pipe.wait(1, wait))) >= 1
            synced = max(wait, _SYNC_MS)
            return int(self._write_and_ask(shard, lambda pipe: pipe.waitaof(1, 0, synced))[0]) >= 1
        except ResponseError:
            return False  # no WAITAOF (7.2), no append-only file, or no memory left

    def is_replicated(self) -> bool:
        """Return whether every server that may be replaced has a replica with all that it took."""
        return self._ask_shards(lambda shards: all(map(self._is_shard_replicated, shards)))

    def _is_shard_replicated(self, shard: Shard) -> bool:
        if not shard.fails_over():
            return True
        try:
            return int(self._write_and_ask(shard, lambda pipe: pipe.wait(1, _REPLICA_WAIT_MS))) >= 1
        except ResponseError:
            return False  # for example, no memory left

    def _write_and_ask(self, shard: Shard, ask: Callable[[Pipeline], object]) -> Any:
        with shard.redis.pipeline(transaction=False) as pipe:
            pipe.hset(shard.keys[0], "confirmed", self._producer)
            ask(pipe)
            return pipe.execute()[-1]

    def _ask_shards(self, ask: Callable[[list[Shard]], bool]) -> bool:
        with redis_errors("replicas"):
            return ask(group_by_shard(self._redis, self._states))
