"""Holds: a command's stands over somebody's, and takes none of it away (G8)."""

from collections import Counter

import fakeredis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Envelope, Position, Scope, SessionRef, TurnCompleted
from memorybus.log.entry import LoggedEvent
from memorybus.redis.keys import Keys
from memorybus.registry import work
from memorybus.registry.instances import (
    InstancePause,
    beside_command,
    command_pause,
    lasting_pause,
    over_lasting,
    prepared_copy,
)
from memorybus.registry.work import APPLY_BOUNDS, LATENCY_BOUNDS, WorkCounter, WorkDone, read_work

PAUSE = InstancePause("its disk is full", "ann", 1)
COMMAND = command_pause("rebuild", "p", "p@2", "ben", 2)


def test_a_commands_hold_is_known_by_its_mark():
    """G8: only what a command holds is a command's: the words of a reason say nothing."""
    assert prepared_copy(COMMAND) == "p@2"
    assert (
        prepared_copy(InstancePause(COMMAND.reason, "ann"))
        == prepared_copy(PAUSE)
        == prepared_copy(None)
        == ""
    )


def test_a_pause_outlives_a_command():
    """G8: what somebody paused before or while a command held it is paused after that."""
    over, beside = over_lasting(PAUSE, COMMAND), beside_command(COMMAND, PAUSE)
    assert over == beside
    assert prepared_copy(over) == "p@2"
    assert lasting_pause(over) == lasting_pause(PAUSE) == PAUSE
    assert over_lasting(over, COMMAND) == over
    assert lasting_pause(COMMAND) is lasting_pause(None) is None
    assert over_lasting(None, COMMAND) == over_lasting(COMMAND, COMMAND) == COMMAND


def test_who_paused_first_is_named():
    """A second pause changes nothing: the first reason stays."""
    later = InstancePause("again", "ben", 9)
    assert beside_command(None, later) == later
    assert beside_command(PAUSE, later) == PAUSE
    assert lasting_pause(beside_command(over_lasting(PAUSE, COMMAND), later)) == PAUSE


KEYS = Keys("mine")
NOW = 1_700_000_000_000
TURN = Envelope(
    id="0" * 32,
    key="k",
    scope=Scope(),
    session=SessionRef("s", "s"),
    at=0,
    event=TurnCompleted(user="a", assistant="b"),
)
DURATIONS = st.sampled_from([*APPLY_BOUNDS, *(bound * 1.5 for bound in APPLY_BOUNDS), 0.0])
AGES_MS = st.sampled_from(
    [*(round(b * 1_000) for b in LATENCY_BOUNDS), *(round(b * 1_001) for b in LATENCY_BOUNDS), -5]
)


def events_of_ages(ages: list[int]) -> list[LoggedEvent]:
    """Return events that entered the log so many milliseconds before `NOW`."""
    return [
        LoggedEvent(Position(0, f"{NOW - age}-0", n), TURN) for n, age in enumerate(ages, start=1)
    ]


def reported(counter: WorkCounter) -> WorkDone:
    """Return what a counter reports to an empty Redis."""
    redis = fakeredis.FakeRedis()
    counter.report(redis, KEYS)
    return read_work(redis, KEYS, ["notes"])["notes"]


def part_of(value: float, bounds: tuple[float, ...]) -> str:
    """Return the part of a histogram that a value belongs to: the first bound not below it."""
    return next((f"{bound:g}" for bound in bounds if value <= bound), "+Inf")


@given(st.lists(st.tuples(DURATIONS, st.lists(AGES_MS, min_size=1, max_size=4)), max_size=20))
def test_every_call_and_event_counts_in_its_part(calls):
    """A part of a histogram holds what is above the bound before it and not above its own."""
    counter = WorkCounter()
    for took, ages in calls:
        counter.settled("notes", events_of_ages(ages), took, NOW)

    done = reported(counter)

    ages = [max(0, age) for _, some in calls for age in some]
    took = Counter(part_of(one, APPLY_BOUNDS) for one, _ in calls)
    latencies = Counter(part_of(age / 1_000, LATENCY_BOUNDS) for age in ages)
    assert {part: n for part, n in done.apply.counts.items() if n} == took
    assert {part: n for part, n in done.latency.counts.items() if n} == latencies
    assert done.latency.sum == pytest.approx(sum(ages) / 1_000)
    assert done.apply.sum == pytest.approx(sum(one for one, _ in calls), abs=1e-5)
    assert counter.totals() == ({"notes": len(ages)} if calls else {})


def test_samples_are_summed_up_before_they_are_too_many(monkeypatch):
    """G10: a worker that cannot report for long keeps no more than a bounded number of samples."""
    monkeypatch.setattr(work, "_MAX_SAMPLES", 3)
    counter = WorkCounter()
    for _ in range(5):
        counter.settled("notes", events_of_ages([20, 20]), 0.01, NOW, doubt=1)
        assert sum(len(one.ages) for one in counter._samples.values()) < 3

    done = reported(counter)

    assert (done.latency.counts["0.05"], done.redelivered) == (10, 5)
