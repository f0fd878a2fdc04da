"""``kill -9`` of a worker whose lanes have a backlog: what its death costs them (G6)."""

import statistics
from collections.abc import Callable

import pytest
from helpers.faults.scale import times
from helpers.faults.trial import Trial, sinks
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus

pytestmark = pytest.mark.alone

BACKLOG = 4_000
SESSIONS = 64
DEFAULTS = {"lease": 10.0, "call_timeout": 8.0, "batch": 500}
"""How much a lane reads and commits at once bounds what its owner's death makes doubtful."""
MOST = 2.0
"""What the backlog may take after a death, as a multiple of what it takes in the calm."""

Scene = Callable[[Trial], None]
"""Leaves the backlog to the only worker of a trial."""


def fill(trial: Trial) -> None:
    """Publish the backlog into the log."""
    with MemoryBus.connect(trial.settings) as bus:
        sessions = [bus.session(f"s{number}", warm=False) for number in range(SESSIONS)]
        for number in range(BACKLOG):
            sessions[number % SESSIONS].turn_completed("hello", "ok", ordinal=number)
        assert bus.flush("logged", 60)


def nobody_dies(trial: Trial) -> None:
    """Leave it to the first worker."""
    fill(trial)
    trial.crew.start()


def an_idle_worker_dies(trial: Trial) -> None:
    """Leave it to the second worker: the first owned all lanes, and had no call under way."""
    (member,) = trial.crew.start()
    lanes = trial.settings.partitions * len(trial.sinks)
    wait_until(lambda: trial.owners()[member.pid] == lanes, "it owns all lanes", 60)
    member.child.freeze()
    fill(trial)
    kill_and_replace(trial)


def a_busy_worker_dies(trial: Trial) -> None:
    """Leave it to the second worker: the first had begun with it."""
    fill(trial)
    trial.crew.start()
    wait_until(lambda: all(map(trial.effects, trial.sinks)), "each provider is called", 60)
    kill_and_replace(trial)


def kill_and_replace(trial: Trial) -> None:
    """SIGKILL the worker; its supervisor would start another, too."""
    trial.catch("kill")
    trial.crew.members[0].child.kill()
    assert trial.crew.replace_dead() == 1


def ms_per_event(trial: Trial) -> float:
    """Wait until the worker has drained the log; return how long an event took it."""
    (member,) = trial.crew.members
    wait_until(lambda: trial.crew.checked() and trial.in_flight() == 0, "all is applied", 300)
    called = [e.at for name in trial.sinks for e in trial.effects(name) if e.pid == member.pid]
    trial.crew.stop()
    assert len(called) > BACKLOG / 2, "whoever died had left too little to measure"
    assert not any(map(trial.parked, trial.sinks)), "an innocent event was blamed"
    for name in trial.sinks:
        assert len({e.event_id for e in trial.effects(name)}) == BACKLOG
    return (max(called) - min(called)) / len(called)


@pytest.mark.fault
@pytest.mark.timeout(900)
@pytest.mark.parametrize("scene", [an_idle_worker_dies, a_busy_worker_dies], ids=["idle", "busy"])
@pytest.mark.parametrize(
    "kinds", [("Transactional", "Keyed"), ("Many", "Keyed"), ("Lookup", "Blind")], ids=" and ".join
)
def test_a_death_hardly_slows_the_lanes_of_its_worker(
    make_redis, make_trial, report, tmp_path, kinds, scene
):
    """G6: called or not when its owner died, a lane goes on nearly as fast as before."""
    server, rounds = make_redis(), times(5, 2)
    calm: list[float] = []
    after: list[float] = []
    for number in range(rounds):
        for leave, taken in ((nobody_dies, calm), (scene, after)):
            place = tmp_path / f"{leave.__name__}-{number}"
            alone = {"namespace": place.name, "data_dir": place, **sinks(place, *kinds)}
            trial = make_trial(server, **alone, **DEFAULTS)
            leave(trial)
            taken.append(ms_per_event(trial))
    ratio = statistics.median(after) / statistics.median(calm)
    report(
        faults=rounds,
        events=2 * rounds * BACKLOG,
        calm_ms=statistics.median(calm),
        after_ms=statistics.median(after),
        after_over_calm=round(ratio, 2),
    )
    assert ratio <= MOST
