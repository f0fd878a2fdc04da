"""Waits before another start, and before another look."""

from hypothesis import given
from hypothesis import strategies as st
from memorybus.concurrency.backoff import (
    FIRST_RESTART,
    HEALTHY_SECONDS,
    LONGEST_RESTART,
    look_pause,
    restart_delay,
)


def test_restarts_back_off_and_are_bounded():
    """G10: a process that dies at once is restarted ever later, up to the bound."""
    delays = [0.0]
    for _ in range(10):
        delays.append(restart_delay(1.0, delays[-1]))
    assert delays[1:4] == [FIRST_RESTART, FIRST_RESTART * 2, FIRST_RESTART * 4]
    assert delays[-1] == LONGEST_RESTART


@given(st.floats(0, 1e6))
def test_a_process_that_lived_long_starts_over(previous):
    """After a healthy life the next restart is quick again."""
    assert restart_delay(HEALTHY_SECONDS, previous) == FIRST_RESTART


@given(st.floats(0, 0.4))
def test_an_answer_is_seen_soon_after_it_came(came):
    """Whoever waits for an answer waits an eighth longer at most, or 2 ms."""
    now = 0.0
    while now < came:
        now += look_pause(now)
    assert now - came <= max(0.002, came / 8)


def test_a_long_wait_takes_few_looks():
    """While an answer does not come, it is looked for 20 times a second."""
    now, looks = 0.0, 0
    while now < 10.0:
        now, looks = now + look_pause(now), looks + 1
    assert looks < 250
