"""Row 11: the same event is published after a second, an hour, a restart of everything (G2)."""

from collections import Counter
from collections.abc import Sequence

import pytest
from helpers.faults import sink
from helpers.faults.scale import QUICK, rounds
from helpers.faults.trial import Trial
from helpers.processes.waiting import wait_until
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.events import TurnCompleted
from memorybus.outbox.rules import Counters
from memorybus.redis.keys import Keys

EVENTS = 1_000 if QUICK else 10_000
OTHERS = 20
"""So many of them come, at last, with another payload under their id."""
HOUR = 5.0
WINDOW = 24 * HOUR
"""An hour is played in seconds, and the day for which ids are remembered in proportion.

The whole row must be over within that day, also on a slow machine: later no id is remembered.
"""


def publish(trial: Trial, numbers: Sequence[int], said: str) -> Counters:
    """Publish turns under ids that are told by their numbers; return what the bus counted."""
    with MemoryBus.connect(trial.settings) as bus:
        session = bus.session("again", warm=False)
        for number in numbers:
            session.publish(_turn(said, number), session.event_id("turn", number), None)
        assert bus.flush("logged", 30), bus.problem
        return bus.counters


def _turn(said: str, number: int) -> TurnCompleted:
    return TurnCompleted(user=f"{said} {number}", ordinal=number)


def an_hour_passes() -> None:
    """Wait for as long as an hour is here."""
    until = SYSTEM.monotonic() + HOUR
    wait_until(lambda: SYSTEM.monotonic() > until, "an hour has passed")


def counted(trial: Trial, what: str) -> int:
    """Return what the log has counted in all partitions."""
    keys = Keys(trial.settings.namespace)
    partitions = range(trial.settings.partitions)
    return sum(int(trial.client.hget(keys.state(p), what) or 0) for p in partitions)


@pytest.mark.fault
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", rounds(10))
def test_duplicates_are_refused(make_redis, make_trial, report, number):
    """G2: each id has one effect in a blind backend; another payload under it is a conflict.

    Every write is synced: what a kill takes back (rows 3 and 4) a blind backend may get again.
    """
    server = make_redis(appendonly="yes", appendfsync="always")
    trial = make_trial(server, "Blind", dedupe_window=WINDOW, lease=10.0, call_timeout=8.0)
    numbers = list(range(EVENTS))
    publish(trial, numbers, "said")
    publish(trial, numbers, "said")
    an_hour_passes()
    publish(trial, numbers, "said")
    trial.crew.start(2)
    trial.crew.wait_ready()
    wait_until(lambda: trial.in_flight() == 0, "all are applied", 90)
    trial.crew.stop()
    server.restart()
    trial.crew.start(2)
    trial.crew.wait_ready()
    publish(trial, numbers, "said")
    counters = publish(trial, trial.rng.sample(numbers, OTHERS), "another payload")
    wait_until(lambda: trial.in_flight() == 0, "all are applied", 90)
    trial.crew.stop()
    effects = trial.effects("blind")
    kept = Counter(effect.ordinal for effect in effects)
    report(
        faults=counted(trial, "duplicates"),
        events=EVENTS,
        lost=EVENTS - len(kept),
        twice=len(effects) - len(kept),
        conflicts=counted(trial, "conflicts"),
    )
    assert sink.count(trial.sink("blind")) == EVENTS
    assert [effect.ordinal for effect in effects] == numbers
    assert counted(trial, "duplicates") >= 3 * EVENTS + OTHERS
    assert counters.conflicts == counted(trial, "conflicts") == OTHERS
