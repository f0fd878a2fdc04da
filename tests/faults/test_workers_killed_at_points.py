"""Row 1: ``kill -9`` of workers at each of seven points, in each delivery class (G1, G3, G4)."""

import itertools
import random
import signal

import pytest
from helpers.faults import sink
from helpers.faults.results import counted
from helpers.faults.scale import rounds
from helpers.faults.trial import Trial
from helpers.processes.waiting import wait_until

POINTS = {
    # Each point, and by how many passes at most a worker comes there before it dies.
    "lane.after_acquire": 4,
    "lane.after_read": 12,
    "lane.before_apply": 12,
    "sink.in_call": 120,
    "sink.after_effect": 120,
    "lane.after_apply": 12,
    "lane.after_commit": 12,
    "lane.before_release": 1,
}
"""The seven of the suite; the one after the provider's commit is held inside and outside."""

KILLS = 18
WORKERS = 4
VICTIMS = 3
"""So many of the workers are under way to their death at a time; the others carry on."""


def tasks(rng: random.Random, count: int) -> list[str]:
    """Return crash points for `count` workers, each point about as often, in any order."""
    names = list(itertools.islice(itertools.cycle(POINTS), count))
    rng.shuffle(names)
    return [f"{name}:{rng.randint(1, POINTS[name])}" for name in names]


def hand_over(trial: Trial, told: set[int]) -> None:
    """Ask those who shall die at a graceful release to end, once they own lanes."""
    owners = trial.owners()
    for member in trial.crew.members:
        due = member.crash.startswith("lane.before_release") and member.pid not in told
        if due and owners[member.pid]:
            told.add(member.pid)
            member.child.send(signal.SIGTERM)


def kill_all(trial: Trial, crashes: list[str]) -> None:
    """Send workers to their deaths, a few at a time, until each crash point was met."""
    told: set[int] = set()
    waiting = list(crashes)
    steady = trial.crew.start(WORKERS - VICTIMS)
    assert steady

    def step() -> bool:
        for member in trial.crew.bury():
            trial.catch(member.crash)
        missing = WORKERS - len(trial.crew.members)
        for crash in [waiting.pop() for _ in range(min(missing, len(waiting)))]:
            trial.crew.start(1, crash)
        hand_over(trial, told)
        return not waiting and not any(m.crash for m in trial.crew.members)

    wait_until(step, f"{len(crashes)} workers have died", 40 + 6 * len(crashes))


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", rounds(20))
@pytest.mark.parametrize("kind", sink.CLASSES)
def test_workers_are_killed_at_every_point(make_redis, make_trial, report, kind, number):
    """G1, G3, G4: nothing lost, nothing twice (blind: at most once a kill), order kept."""
    trial = make_trial(make_redis(), kind)
    trial.write()
    crashes = tasks(trial.rng, KILLS)
    kill_all(trial, crashes)
    outcome = trial.finish(faults=KILLS)
    verdict = outcome.verdicts[kind.lower()]
    report(
        faults=len(outcome.faults),
        **counted([verdict]),
        stale=verdict.stale,
        asked_again=sink.refused(trial.sink(kind.lower())),
        rate=outcome.done.rate,
    )
    assert {fault.name for fault in outcome.faults} == set(crashes)
    assert not verdict.faults(may_repeat=KILLS if kind == "Blind" else 0)
    assert verdict.parked == 0
