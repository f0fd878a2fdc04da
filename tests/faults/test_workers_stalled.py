"""Row 2: workers stop for longer than three leases while others work, then go on (G5)."""

import pytest
from helpers.faults.crew import Member
from helpers.faults.results import counted
from helpers.faults.scale import rounds
from helpers.faults.trial import Trial
from helpers.processes.waiting import wait_until
from memorybus.clock import SYSTEM

LEASE = 0.6
STALLS = 14
WORKERS = 4
AT_ONCE = 3


def stalled(trial: Trial) -> list[Member]:
    """Stop some workers that own lanes; return them."""
    owners = trial.owners()
    busy = [m for m in trial.crew.checked() if owners[m.pid]]
    chosen = trial.rng.sample(busy, min(AT_ONCE, len(busy)))
    for member in chosen:
        trial.catch("stall")
        member.child.freeze()
    return chosen


def outlast(trial: Trial, frozen: list[Member]) -> None:
    """Wait for three leases, and until others own the lanes.

    A worker stopped inside a SQLite transaction keeps that file locked, which no lease can end:
    so the lanes of one of the two sinks must be owned, and nothing by who is stopped.
    """
    until = SYSTEM.monotonic() + 3 * LEASE
    lanes = trial.settings.partitions
    pids = {member.pid for member in frozen}

    def taken_over() -> bool:
        owners = trial.owners()
        return SYSTEM.monotonic() > until and owners.total() >= lanes and not pids & owners.keys()

    wait_until(taken_over, "others own the lanes of the stalled", 3 * LEASE + 60)


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", rounds(20))
def test_workers_stall_past_three_leases(make_redis, make_trial, report, number):
    """G5: what was stopped finds itself replaced: it writes nothing more, and says so.

    The one call that each had under way may end late, and a blind backend may get that once more;
    that is what G5 says. A transactional one refuses it.
    """
    trial = make_trial(make_redis(), "Transactional", "Blind", lease=LEASE, call_timeout=0.3)
    trial.write()
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    while len(trial.faults) < STALLS:
        trial.wait_shared_out()
        frozen = stalled(trial)
        outlast(trial, frozen)
        before = trial.refusals()
        for member in frozen:
            member.child.thaw()
        wait_until(lambda before=before: trial.refusals() > before, "the stale owner was told", 60)
    told = trial.refusals()
    verdicts = trial.finish(faults=STALLS).verdicts
    transactional, blind = verdicts["transactional"], verdicts["blind"]
    report(
        faults=len(trial.faults),
        **counted([transactional]),
        lost_blind=len(blind.lost),
        twice_blind=blind.repeats,
        stale=transactional.stale,
        stale_blind=blind.stale,
        told=told,
    )
    assert not transactional.faults()
    under_way = len(trial.faults)
    assert not blind.faults(may_repeat=under_way, may_be_stale=under_way)
