"""A master watched by sentinels: its client follows it, and a failover costs nothing (G1, G2)."""

from collections.abc import Iterator

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.redis.clusters import Sentinels, running
from helpers.redis.log import logged, numbered, publish
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import agent, home, numbers, recorded, thread_worker, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable, NoWorker
from memorybus.health.monitor import read_status
from redis.exceptions import RedisError

pytestmark = pytest.mark.timeout(300)

FAILOVER_SECONDS = 90
"""Seconds: sentinels that were held up for two trust their clocks again after thirty."""


@pytest.fixture(name="sentinels")
def _sentinels() -> Iterator[Sentinels]:
    sentinels = Sentinels()
    with running(sentinels):
        yield sentinels


@pytest.fixture(name="watched")
def _watched(sentinels: Sentinels, make_settings: MakeSettings) -> Settings:
    return make_settings(
        url=sentinels.url,
        lease=1.0,
        call_timeout=0.5,
        spool_keep=60.0,
        partitions=4,
        **recorded("Transactional"),
    )


def test_a_failover_loses_nothing(sentinels, watched):
    """G1, G4: what was `replicated` is there; what only the master had is sent again, once.

    Rows stay in the spool until a replica has them, however short `spool_keep` is.
    """
    watched = msgspec.structs.replace(watched, spool_keep=0.1)
    with thread_worker(watched), MemoryBus.connect(watched) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 50)
        assert bus.flush("replicated", 25), bus.problem
        wait_until(lambda: bus.publisher.spool.size == 0, "rows that a replica has are deleted")
        master, replica = sentinels.servers
        replica.freeze()
        master.client().execute_command("CLIENT", "KILL", "TYPE", "replica")
        publish(session, 50, 50)
        assert bus.flush("logged", 25), bus.problem
        assert not bus.flush("replicated", 0.5), "the replica is behind"
        wait_until(lambda: len(texts(home(watched))) == 100, "all are applied")
        until = SYSTEM.monotonic() + 2.0
        wait_until(lambda: SYSTEM.monotonic() > until, "the time to delete them has passed")
        master.kill()
        replica.thaw()
        wait_until(
            lambda: sentinels.master() is replica, "the replica is the master", FAILOVER_SECONDS
        )
        publish(session, 100, 50)
        assert bus.flush("logged", FAILOVER_SECONDS), bus.problem
        wait_until(lambda: len(texts(home(watched))) >= 150, "all are applied", FAILOVER_SECONDS)
    assert sum(one.resent for one in logged(watched)) == 50
    assert texts(home(watched)) == numbered(150)


def test_a_failover_under_load(sentinels, watched, spawn, flag):
    """G1 to G5: agents and workers outlive the death of their master; all is applied once."""
    turns = 2_000
    workers = [worker(spawn, watched), worker(spawn, watched)]
    agents = [
        agent(
            spawn,
            watched,
            "--session",
            f"s{n}",
            "--count",
            turns,
            "--flush",
            FAILOVER_SECONDS,
            "--gate",
            flag,
        )
        for n in range(2)
    ]
    wait_until(lambda: texts(home(watched)), "events flow")
    sentinels.fail_over(meanwhile=flag.unlink)  # half of them at least come when the master is dead
    for child in agents:
        assert child.wait(FAILOVER_SECONDS + 10) == 0, child.output()
        assert "\nflushed" in child.output(), child.output()[-300:]
        assert numbers(child.output()) == list(range(turns))
    wait_until(lambda: len(texts(home(watched))) >= 2 * turns, "all are applied", 60)
    found = texts(home(watched))
    assert sorted(found) == sorted(2 * [f"turn {number:05d}" for number in range(turns)])
    assert all(child.alive for child in workers)


@pytest.mark.long
def test_a_master_that_only_stalled(sentinels, watched):
    """G2, G4: what a replaced master still took, before it was told, comes again, once."""
    old, new = sentinels.servers
    with thread_worker(watched), MemoryBus.connect(watched) as bus:
        session = bus.session("s", warm=False)
        publish(session, 0, 50)
        assert bus.flush("replicated", 25), bus.problem
        old.freeze()
        publish(session, 50, 50)
        wait_until(lambda: sentinels.master() is new, "the replica is the master", FAILOVER_SECONDS)
        old.thaw()  # it takes what waits in its sockets, and believes that it is the master
        publish(session, 100, 50)
        wait_until(lambda: _role(old) == "slave", "the old master is told", FAILOVER_SECONDS)
        publish(session, 150, 50)
        assert bus.flush("replicated", FAILOVER_SECONDS), bus.problem
        wait_until(lambda: len(texts(home(watched))) >= 200, "all are applied", FAILOVER_SECONDS)
    assert texts(home(watched)) == numbered(200)
    assert read_status(watched).providers[0].backlog == 0


def _role(server: RedisServer) -> str:
    try:
        return str(server.client().info("replication")["role"])
    except RedisError:
        return ""  # whoever is made a replica breaks its connections


def test_jobs_go_through_sentinels(sentinels, watched, spawn):
    """G9: recalls are asked and answered over sentinels too, also after a failover."""
    child = worker(spawn, watched, jobs=1)
    with MemoryBus.connect(watched) as bus:
        session = bus.session("s", warm=False)
        session.turn_completed("the harbour opens at six", "ok")
        assert bus.flush("logged", 25)
        wait_until(lambda: texts(home(watched)), "it is applied")
        assert "six" in bus.recall("harbour", timeout=20).text
        sentinels.fail_over()
        wait_until(lambda: bus.flush("logged", 1), "the agent follows", FAILOVER_SECONDS)
        wait_until(lambda: _recalled(bus), "the answers come again", FAILOVER_SECONDS)
    assert child.alive, child.output()


def _recalled(bus: MemoryBus) -> bool:
    try:
        return "six" in bus.recall("harbour", timeout=5).text
    except (LogUnavailable, NoWorker):
        return False
