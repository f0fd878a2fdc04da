"""Row 8: the wall clock of any host jumps by an hour, or back by five minutes (G2, G5)."""

from collections import Counter
from pathlib import Path

import pytest
from helpers.faults import sink
from helpers.faults.crew import Crew
from helpers.faults.results import counted
from helpers.faults.scale import rounds
from helpers.faults.trial import Trial
from helpers.making import MakeServer
from helpers.processes.clocks import WrongClock
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM

HOUR, BACK = 3_600, -300
JUMPS = [(host, by) for by in (HOUR, -HOUR, BACK) for host in ("redis", "workers", "producer")]
AT_ONCE = 6
WORKERS = 4
LEASE = 6.0
"""Longer than a busy machine stands still: a lease that ends before its time shall be the jump's
doing. Each jump is far longer than that."""
SEEN_AFTER = 1.2 + LEASE / 3
"""Seconds until every process has seen its clock's jump, and has renewed its leases since."""
MARKS = 50
ABOUT = 20_000
"""Milliseconds within which a wrong clock is the one that was meant."""


@pytest.fixture
def clocks(tmp_path: Path) -> dict[str, WrongClock]:
    """Return a clock for each host."""
    return {name: WrongClock(tmp_path, name) for name in ("redis", "workers", "producer")}


@pytest.fixture
def drifting_redis(
    make_redis: MakeServer, clocks: dict[str, WrongClock], monkeypatch: pytest.MonkeyPatch
) -> RedisServer:
    """Return a server that runs by a clock of its own."""
    with monkeypatch.context() as patch:
        for name, value in clocks["redis"].env.items():
            patch.setenv(name, value)
        return make_redis()


class Marks:
    """Events published again and again under the same ids: the log must take each once (G2)."""

    def __init__(self, trial: Trial) -> None:
        self.sent = 0
        self._trial = trial
        self.again()

    def again(self) -> None:
        """Publish them all."""
        with MemoryBus.connect(self._trial.settings) as bus:
            session = bus.session("marks", warm=False)
            for number in range(MARKS):
                session.turn_completed(f"mark {number}", "ok", ordinal=number)
            assert bus.flush("logged", 60), bus.problem
        self.sent += MARKS


def is_wrong(trial: Trial, host: str, seconds: int) -> bool:
    """Whether a host goes by its wrong clock: by what it says, applied or published last."""
    (name,) = trial.sinks
    said = {
        "redis": lambda: [trial.client.time()[0] * 1_000],
        "workers": lambda: [effect.at for effect in sink.newest(trial.sink(name))],
        "producer": lambda: [effect.said for effect in sink.newest(trial.sink(name))],
    }[host]()
    should = SYSTEM.now_ms() + seconds * 1_000
    return any(abs(at - should) < ABOUT for at in said)


def jump(trial: Trial, clock: WrongClock, host: str, seconds: int) -> None:
    """Set a host's clock wrong, wait until it is seen and events flow on."""
    trial.catch(f"{host} {seconds:+d} s")
    clock.set(seconds)
    wait_until(lambda: is_wrong(trial, host, seconds), f"{trial.faults[-1].name} is seen", 60)
    until = SYSTEM.monotonic() + SEEN_AFTER
    (name,) = trial.sinks
    seen = sink.count(trial.sink(name))
    wait_until(
        lambda: SYSTEM.monotonic() > until and sink.count(trial.sink(name)) > seen + 1_000,
        f"events flow after {trial.faults[-1].name}",
        LEASE + 60,
    )


@pytest.mark.fault
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", rounds(10))
def test_clocks_jump(drifting_redis, clocks, make_trial, spawn, report, number):
    """G2, G4, G5: no lease and no remembered id ends early; nothing is lost, nothing comes twice.

    The backend is a blind one, so that neither its ids nor its ledger help.
    """
    trial = make_trial(drifting_redis, "Blind", lease=LEASE)
    trial.crew = Crew(spawn, trial.settings, env=clocks["workers"].env)
    trial.write(env=clocks["producer"].env)
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    trial.wait_shared_out()
    marks = Marks(trial)
    early: Counter[str] = Counter()
    epochs = trial.epochs()
    for host, seconds in trial.rng.sample(JUMPS, AT_ONCE):
        jump(trial, clocks[host], host, seconds)
        marks.again()
        before, epochs = epochs, trial.epochs()
        early[host] += epochs - before
    outcome = trial.finish(faults=AT_ONCE)
    verdict = outcome.verdicts["blind"]
    report(
        faults=len(outcome.faults),
        **counted([verdict]),
        leases_ended_early=early.total(),
        rate=outcome.done.rate,
    )
    assert not verdict.faults(may_exceed=MARKS)
    assert not early.total(), f"leases ended before their time: {dict(early)}"
