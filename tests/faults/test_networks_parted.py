"""Row 5: workers, then producers, are cut off from Redis and come back (G1, G5, G9)."""

from collections.abc import Callable

import pytest
from helpers.faults import sink
from helpers.faults.crew import Crew
from helpers.faults.results import counted
from helpers.faults.scale import rounds, spread
from helpers.making import MakeServer
from helpers.processes.islands import Island
from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.redis.servers import RedisServer
from memorybus.clock import SYSTEM

SHORTEST, LONGEST = 8.0, 60.0
LEASE = 3.0
"""Longer than a busy machine stands still: a blind call is repeated for the cut alone."""
HEALED = 30.0
AT_EACH_SIDE = 2
WORKERS = 2 * AT_EACH_SIDE
ACCEPTED_MEANWHILE = 1_000
"""Events per second that a producer must go on accepting, half of what is offered."""


@pytest.fixture
def island(make_island: Callable[[], Island]) -> Island:
    """Return a host that can be cut off."""
    return make_island()


@pytest.fixture
def shore_redis(make_redis: MakeServer, island: Island) -> RedisServer:
    """Return a server that the island reaches by its network, and we by a socket."""
    (port,) = free_ports(1)
    return make_redis(port=port, bind=island.shore, protected_mode="no")


def url_from(island: Island, server: RedisServer) -> str:
    """Return the server as the island sees it."""
    return f"redis://{island.shore}:{server.options['port']}"


def wait_for(seconds: float) -> None:
    """Let a time pass."""
    until = SYSTEM.monotonic() + seconds
    wait_until(lambda: SYSTEM.monotonic() > until, f"{seconds:g} s have passed", seconds + 5)


def healed(island: Island, recovered: Callable[[], bool]) -> float:
    """Heal an island; return the seconds until all is as it was."""
    begin = SYSTEM.monotonic()
    island.heal()
    wait_until(recovered, "recovered after healing", HEALED)
    return SYSTEM.monotonic() - begin


@pytest.mark.fault
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", rounds(30))
def test_workers_are_cut_off(shore_redis, island, make_trial, spawn, report, number):
    """G3, G5: half of the workers cannot reach Redis: each lane has one owner, then as before."""
    trial = make_trial(shore_redis, "Blind", lease=LEASE, call_timeout=LEASE - 0.5)
    away = Crew(spawn, trial.with_url(url_from(island, shore_redis)), within=island.within)
    trial.write()
    trial.crew.start(AT_EACH_SIDE)
    away.start(AT_EACH_SIDE)
    trial.crew.wait_ready()
    away.wait_ready()
    pids = {member.pid for member in away.members}
    lanes = trial.settings.partitions

    def shared() -> bool:
        owners = trial.owners()
        return owners.total() == lanes and pids <= owners.keys() and len(owners) == WORKERS

    wait_until(shared, "the lanes are shared out", 60)
    trial.catch("workers cut off")
    island.cut()
    wait_until(lambda: not pids & trial.owners().keys(), "their leases have ended", LEASE + 2)
    wait_until(lambda: trial.owners().total() == lanes, "the others have taken over", 2)
    seconds = spread(trial.rng, SHORTEST, LONGEST)
    wait_for(seconds)
    assert not pids & trial.owners().keys()
    recovery = healed(island, shared)
    done = trial.drain()
    away.stop()
    outcome = trial.outcome_of(done, faults=1)
    verdict = outcome.verdicts["blind"]
    report(
        faults=len(outcome.faults),
        **counted([verdict]),
        stale=verdict.stale,
        cut_off_s=seconds,
        recovery_s=recovery,
    )
    # One call of each worker may be under way when it is cut off: it is repeated, or ends late.
    assert not verdict.faults(may_repeat=AT_EACH_SIDE, may_be_stale=AT_EACH_SIDE)


@pytest.mark.fault
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", rounds(30))
def test_a_producer_is_cut_off(shore_redis, island, make_trial, report, number):
    """G1, G3, G9: the producer goes on accepting, and what it took is sent, in order, later."""
    trial = make_trial(shore_redis, "Keyed")
    trial.write(within=island.within, env={"MEMORYBUS_URL": url_from(island, shore_redis)})
    trial.crew.start(AT_EACH_SIDE)
    trial.crew.wait_ready()
    trial.wait_shared_out()
    before = len(trial.receipts())
    island.cut()
    seconds = spread(trial.rng, SHORTEST, LONGEST)
    wait_for(seconds)
    accepted = len(trial.receipts())
    assert accepted - before > ACCEPTED_MEANWHILE * seconds, "the producer was held up"
    trial.fault("producer cut off", accepted - sink.count(trial.sink("keyed")))
    recovery = healed(island, lambda: sink.count(trial.sink("keyed")) >= accepted)
    outcome = trial.finish()
    verdict = outcome.verdicts["keyed"]
    report(
        faults=len(outcome.faults),
        **counted([verdict]),
        accepted_meanwhile=accepted - before,
        cut_off_s=seconds,
        recovery_s=recovery,
    )
    assert not verdict.faults()
