"""The oracle sees a healthy run as one, and each broken sink for what it is."""

import pytest
from helpers.faults import sink
from helpers.processes.waiting import wait_until

BROKEN = ("Keyed", "Forgetful", "Doubling", "Muddled")


@pytest.mark.fault
@pytest.mark.timeout(300)
def test_broken_sinks_are_found(make_redis, make_trial):
    """G1, G3, G4: what a sink loses, doubles or muddles is told; a healthy one is fine."""
    trial = make_trial(make_redis(), *BROKEN)
    trial.write("--rate", 500)
    trial.crew.start(2)
    wait_until(lambda: all(sink.count(trial.sink(n)) > 500 for n in trial.sinks), "it flows", 60)
    trial.fault("a broken sink", in_flight=1)
    verdicts = trial.finish().verdicts
    assert not verdicts["keyed"].faults()
    assert verdicts["forgetful"].lost
    assert verdicts["doubling"].repeats
    assert verdicts["muddled"].disordered
