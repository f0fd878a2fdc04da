"""`flush` tells what Redis has now: whoever noticed a loss, and whoever answered before (G1)."""

from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.redis.clusters import with_replica
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import log_length
from helpers.stories.spools import abandoned, files_of, numbers_logged
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.log.replication import Replication
from memorybus.outbox.rules import SendingContext
from memorybus.outbox.sender import drain_orphans
from memorybus.redis.connect import connect_redis

KEEP: Any = {"spool_keep": 300.0}
"""Rows are in the spool as long as a test runs, and nobody compares for their deletion."""


def comes_back_empty(bus: MemoryBus, master: RedisServer, settings: Settings) -> None:
    """Kill a server and start it without its data; a recall's request is the first to notice."""
    master.kill()
    master.start()
    bus.session("s", warm=False).queue_prefetch("what did I say")
    asked = f"{settings.namespace}:want:*"
    wait_until(lambda: list(master.client().scan_iter(asked)), "the recall is asked for")


def is_emptied(_: MemoryBus, master: RedisServer, __: Settings) -> None:
    """Delete everything beneath living connections: nobody can notice."""
    master.client().flushall()


@pytest.mark.parametrize("level", ["logged", "replicated"])
@pytest.mark.parametrize("lose", [comes_back_empty, is_emptied])
def test_what_redis_lost_is_sent_again_before_a_flush_is_answered(
    make_redis, make_settings, lose, level
):
    """G1: a level is told of events that Redis has when it is asked, not of those it once had."""
    master, _ = with_replica(make_redis)
    settings = make_settings(url=master.url, **KEEP)
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("a", "b")
        assert bus.flush(level, 25), bus.problem
        count = log_length(master.client(), settings)
        assert count == 2
        lose(bus, master, settings)
        assert bus.flush(level, 25), bus.problem
        assert log_length(master.client(), settings) == count


def test_a_spool_is_not_discarded_over_a_loss(make_redis, make_settings, monkeypatch):
    """G1: a dead process's spool stays if Redis lost it while a replica was being asked."""
    server = make_redis()
    settings = make_settings(url=server.url, spool_keep=0.0, compress_min_bytes=1 << 30)
    path = abandoned(settings, 3)
    client = connect_redis(settings)
    lost: list[bool] = []

    def is_replicated(_: Replication) -> bool:
        if not lost:
            lost.append(bool(server.client().flushall()))
        return True

    monkeypatch.setattr(Replication, "is_replicated", is_replicated)
    drain_orphans(files_of(settings), client, SendingContext(settings))
    assert lost
    assert path.exists()
    drain_orphans(files_of(settings), client, SendingContext(settings))
    assert numbers_logged(server.client(), settings) == [0, 1, 2]
    client.close()
