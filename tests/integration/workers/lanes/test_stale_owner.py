"""A worker that is stopped in a call, replaced, and goes on: what it may still change (G5)."""

import pytest
from helpers.faults import sink
from helpers.faults.crew import Member
from helpers.faults.oracle import judge
from helpers.faults.trial import LOST, Trial
from helpers.processes.stopped import IN_CALL, READ
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus

BEFORE, AFTER = 20, 40


def publish(trial: Trial, first: int, count: int) -> None:
    """Publish numbered turns of one session."""
    with MemoryBus.connect(trial.settings) as bus:
        session = bus.session("s", warm=False)
        for number in range(first, first + count):
            session.turn_completed(f"{number}", "ok", ordinal=number)
        assert bus.flush("logged", 30), bus.problem


def was_told(member: Member) -> bool:
    """Whether a worker has said that its lane has another owner, or another thread its work."""
    said = member.child.output()
    return any(one in said for one in (LOST, "partition 0: epoch ", "the thread was given up"))


@pytest.mark.parametrize("kind", ["Blind", "Keyed", "Lookup"])
@pytest.mark.parametrize(("place", "under_way"), [(IN_CALL, 1), (READ, 0)])
def test_who_was_stopped_writes_no_more(make_redis, make_trial, kind, place, under_way):
    """G5: of the batch in hand, only the one call under way may still land; then it is told.

    A backend that takes our id refuses that one too.
    """
    trial = make_trial(make_redis(), kind, partitions=1, lease=2.0, call_timeout=1.0)
    name = kind.lower()
    trial.settings.provider[name]["kind"] = f"helpers.processes.stopped:{kind}"
    publish(trial, 0, BEFORE)
    (stopped,) = trial.crew.start()
    wait_until(lambda: sink.count(trial.sink(name)) == BEFORE, "the first one works", 60)
    (trial.sink(name) / place).touch()
    publish(trial, BEFORE, AFTER)
    wait_until(lambda: not (trial.sink(name) / place).exists(), "it has stopped itself", 60)
    trial.crew.start()
    wait_until(lambda: sink.count(trial.sink(name)) >= BEFORE + AFTER, "the second did it", 60)
    stopped.child.thaw()
    wait_until(lambda: was_told(stopped), "the first one was told", 60)
    trial.crew.stop()
    effects = trial.effects(name)
    verdict = judge([], effects)
    # More than two if the machine stood still: an owner then takes its own lane once more.
    assert len({effect.epoch for effect in effects} - {0}) >= 2, "one of them is not known"
    assert verdict.stale <= under_way
    assert verdict.repeats <= (0 if kind == "Keyed" else under_way)
    assert not verdict.disordered
