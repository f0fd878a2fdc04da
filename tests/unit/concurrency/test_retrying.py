"""Waits before another try and before another start."""

from hypothesis import given
from hypothesis import strategies as st
from memorybus.concurrency.backoff import FIRST_RESTART, HEALTHY, LONGEST_RESTART, restart_delay


def test_restarts_back_off_and_are_bounded() -> None:
    """G10: a process that dies at once is restarted ever later, up to the bound."""
    delays = [0.0]
    for _ in range(10):
        delays.append(restart_delay(1.0, delays[-1]))
    assert delays[1:4] == [FIRST_RESTART, FIRST_RESTART * 2, FIRST_RESTART * 4]
    assert delays[-1] == LONGEST_RESTART


@given(st.floats(0, 1e6))
def test_a_process_that_lived_long_starts_over(previous: float) -> None:
    """After a healthy life the next restart is quick again."""
    assert restart_delay(HEALTHY, previous) == FIRST_RESTART
