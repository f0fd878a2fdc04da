"""Rows 3, 4 and 7: Redis is killed, comes back without its last second, is out of memory."""

import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.faults import sink
from helpers.faults.results import counted
from helpers.faults.scale import rounds
from helpers.faults.trial import Trial
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM

KILLS = 10
LOSSES = 5
FILLINGS = 2
WORKERS = 4
SECOND = 1.0
ROOM = 6 << 20
"""Bytes that Redis may still take before it is full."""


def events_flow(trial: Trial, some: int = 500) -> None:
    """Wait until the slowest sink has taken more."""

    def least() -> int:
        return min(sink.count(trial.sink(name)) for name in trial.sinks)

    seen = least()
    wait_until(lambda: trial.crew.checked() and least() > seen + some, "events flow", 60)


def seconds_of(act: Callable[[], None]) -> float:
    """Return how long something takes."""
    begin = SYSTEM.monotonic()
    act()
    return SYSTEM.monotonic() - begin


def begun(trial: Trial) -> Trial:
    """Start the load and the workers of a run, and wait until all is under way."""
    trial.write()
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    events_flow(trial)
    return trial


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(10))
@pytest.mark.parametrize("fsync", ["everysec", "always"])
def test_redis_is_killed_again_and_again(make_redis, make_trial, report, fsync, number):
    """G1, G3: nothing is lost, spools drain in order, nothing is applied twice."""
    server = make_redis(appendonly="yes", appendfsync=fsync, auto_aof_rewrite_percentage="0")
    trial = begun(make_trial(server, "Transactional", "Keyed"))
    recovery: list[float] = []
    for _ in range(KILLS):
        trial.catch(f"kill {fsync}")
        server.restart()
        recovery.append(seconds_of(lambda: events_flow(trial)))
    outcome = trial.finish(faults=KILLS)
    report(
        faults=len(outcome.faults),
        **counted(outcome.verdicts.values()),
        rate=outcome.done.rate,
        median_recovery_s=statistics.median(recovery),
        slowest_recovery_s=max(recovery),
    )
    for name, verdict in outcome.verdicts.items():
        assert not verdict.faults(), name
        assert verdict.parked == 0


def lose_last_second(server: RedisServer) -> int:
    """Kill the server and cut its file to what it was a second before; return the bytes cut."""
    path = append_only_file(server)
    size = path.stat().st_size
    until = SYSTEM.monotonic() + SECOND
    wait_until(
        lambda: SYSTEM.monotonic() > until and path.stat().st_size > size,
        "a second has passed, and something was written in it",
    )
    server.kill()
    cut = path.stat().st_size - size
    with path.open("ab") as file:
        file.truncate(size)
    server.start()
    return cut


def append_only_file(server: RedisServer) -> Path:
    """Return the file that the server appends to; from version 7 it is one of several."""
    found = sorted(server.directory.rglob("*.incr.aof")) or sorted(server.directory.glob("*.aof"))
    assert found, f"no append-only file in {server.directory}"
    return found[-1]


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(10))
def test_redis_comes_back_without_its_last_second(make_trial, aof_redis, report, number):
    """G1, G2, G4: the loss is found by producer sequence and resent; no effect comes twice."""
    trial = begun(make_trial(aof_redis, "Transactional", "Keyed", "Lookup", spool_keep=60.0))
    bytes_lost = 0
    for _ in range(LOSSES):
        trial.catch("lost tail")
        cut = lose_last_second(aof_redis)
        assert cut > 0, "nothing was lost"
        bytes_lost += cut
        events_flow(trial)
    outcome = trial.finish(faults=LOSSES)
    report(
        faults=len(outcome.faults),
        **counted(outcome.verdicts.values()),
        bytes_lost=bytes_lost,
        rewinds=outcome.done.counters["rewinds"],
    )
    for name, verdict in outcome.verdicts.items():
        assert not verdict.faults(), name
        assert verdict.parked == 0


@pytest.mark.fault
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", rounds(10))
def test_redis_is_out_of_memory(make_redis, make_trial, report, number):
    """G1, G9, G10: a full Redis takes no event and says so; lanes still drain; then all goes on."""
    server = make_redis(maxmemory_policy="noeviction")
    trial = begun(make_trial(server, "Keyed"))
    client = server.client()
    for _ in range(FILLINGS):
        client.config_set("maxmemory", client.info("memory")["used_memory"] + ROOM)
        refused_for_memory(trial)
        trial.fault(
            "out of memory",
            wait_until(lambda: max(0, waiting(trial)), "events wait for Redis to have room"),
        )
        wait_until(lambda: trial.in_flight() == 0, "workers drain and commit in a full Redis", 60)
        assert client.info("stats")["evicted_keys"] == 0
        client.config_set("maxmemory", 0)
        events_flow(trial)
    outcome = trial.finish(faults=FILLINGS)
    verdict = outcome.verdicts["keyed"]
    report(faults=len(outcome.faults), **counted([verdict]))
    assert not verdict.faults()
    assert verdict.parked == 0


def waiting(trial: Trial) -> int:
    """Count what was accepted and not applied; less than 0 where a receipt comes late."""
    return len(trial.receipts()) - sink.count(trial.sink("keyed"))


def refused_for_memory(trial: Trial) -> None:
    """Publish until Redis takes no more, and the bus says so."""
    with MemoryBus.connect(trial.settings) as bus:
        session = bus.session("witness", warm=False)

        def is_told() -> bool:
            session.turn_started("?")
            return "memory" in bus.problem

        wait_until(is_told, "the bus says that Redis is out of memory", 60)
