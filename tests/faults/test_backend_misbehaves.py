"""Row 10: a backend behind HTTP answers 429, 500, nothing, half, slowly (G3, G4, G6)."""

import pytest
from helpers.faults.oracle import judge
from helpers.faults.remote import MISDEEDS
from helpers.faults.results import counted
from helpers.faults.scale import rounds
from helpers.processes.waiting import wait_until

TIMES = 10
WORKERS = 2
RATE = 300
"""Events per second: a backend written in Python takes not many more."""
AFTER_EACH = 150
MOST_CALLS = 1.5


@pytest.mark.fault
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", rounds(30))
def test_a_backend_misbehaves(make_redis, make_trial, backend, report, number):
    """G3, G4, G6: nothing is parked or lost, order is kept, and the backend is not stormed."""
    options = {"kind": "helpers.faults.remote:Remote", "port": backend.port, "timeout": 0.3}
    trial = make_trial(
        make_redis(), providers=("remote",), provider={"remote": options}, concurrency=8
    )
    trial.write("--rate", RATE)
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    wait_until(lambda: len(backend.effects) > AFTER_EACH, "events flow", 60)
    misdeeds = list(MISDEEDS)
    trial.rng.shuffle(misdeeds)
    for misdeed in misdeeds:
        trial.catch(misdeed)
        backend.misbehave(misdeed, TIMES)
        wait_until(lambda m=misdeed: backend.done[m] == TIMES, f"{misdeed}, {TIMES} times", 60)
        stored = len(backend.effects)
        wait_until(
            lambda stored=stored: len(backend.effects) > stored + AFTER_EACH, "events flow on", 60
        )
    trial.finish(faults=len(MISDEEDS))
    verdict = judge(trial.receipts(), backend.effects, parked=trial.parked("remote"))
    report(
        faults=backend.done.total(),
        **counted([verdict]),
        calls=backend.calls,
        parked=verdict.parked,
    )
    assert not verdict.faults()
    assert verdict.parked == 0
    assert backend.calls <= MOST_CALLS * verdict.accepted
