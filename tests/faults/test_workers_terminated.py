"""Row 13: a storm of SIGTERM: a worker is asked to end, another starts (G3, G4)."""

import pytest
from helpers.faults.results import counted
from helpers.faults.scale import rounds, spread
from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM

STORM = 20
WORKERS = 4
GRACE = 10.0


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", rounds(15))
def test_workers_end_when_asked(make_redis, make_trial, report, number):
    """G3, G4: each finishes its batch and gives its lanes up in time: no loss, no repeat.

    The lease is long: were a lane not given up, the next owner would wait for its end. So is the
    time of a call: one that a machine holds up must not look as if it hung.
    """
    trial = make_trial(make_redis(), "Blind", lease=30.0, call_timeout=20.0)
    trial.write()
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    slowest = 0.0
    for _ in range(STORM):
        owners = trial.owners()
        busy = [m for m in trial.crew.checked() if owners[m.pid]]
        trial.catch("SIGTERM")
        begin = SYSTEM.monotonic()
        assert trial.crew.dismiss(trial.rng.choice(busy), GRACE) == 0
        slowest = max(slowest, SYSTEM.monotonic() - begin)
        trial.crew.start(1)
        until = SYSTEM.monotonic() + spread(trial.rng, 0.2, 10.0)
        wait_until(lambda until=until: SYSTEM.monotonic() > until, "the next is due", 20)
        wait_until(
            lambda: trial.owners().total() == trial.settings.partitions,
            "all lanes have owners again",
            GRACE + 10,  # less than a lease, still
        )
    outcome = trial.finish(faults=STORM)
    verdict = outcome.verdicts["blind"]
    report(faults=len(outcome.faults), **counted([verdict]), stale=verdict.stale, slowest_s=slowest)
    assert not verdict.faults()
