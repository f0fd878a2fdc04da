"""Retry decisions: pure, by tables."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import Permanent, ProviderHung, StaleEpoch, Transient, Unavailable
from memorybus.retrying import backoff
from memorybus_workers.retry import Breaker, decide, pause, reason


@pytest.mark.parametrize(
    ("error", "attempt", "action"),
    [
        (Transient("busy"), 1, "retry"),
        (Transient("busy"), 4, "retry"),
        (Transient("busy"), 5, "park"),
        (Unavailable("down"), 1, "pause"),
        (Unavailable("down"), 99, "pause"),
        (ProviderHung("slow"), 3, "pause"),
        (Permanent("no"), 1, "park"),
        (ValueError("a mistake"), 1, "park"),
        (StaleEpoch("old"), 1, "stop"),
    ],
)
def test_decision(error: Exception, attempt: int, action: str) -> None:
    """A backend that is down parks nothing; a refused or worn-out event parks its key (G6)."""
    assert decide(error, attempt, 5, random.Random(1)).action == action


@given(st.integers(1, 10_000), st.integers())
def test_waits_are_bounded(failures: int, seed: int) -> None:
    """No wait is longer than its cap or shorter than half of its step (G10)."""
    assert 0.05 <= pause(failures, random.Random(seed)) <= 30.0
    assert 0.025 <= backoff(failures, random.Random(seed)) <= 5.0


def test_waits_grow() -> None:
    """Every failure in a row doubles the wait, up to the cap."""
    waits = [pause(n, random.Random(3)) for n in range(1, 9)]
    assert waits == sorted(waits)
    assert waits[-1] > 50 * waits[0]


def test_breaker_opens_and_closes() -> None:
    """The breaker is open for its wait after a failure, and closed by a success."""
    breaker = Breaker(random.Random(1))
    delay = breaker.failed(100.0)
    assert breaker.until == 100.0 + delay
    assert breaker.failed(200.0) > delay / 2
    assert breaker.failures == 2
    breaker.succeeded()
    assert (breaker.failures, breaker.until) == (0, 0.0)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Permanent("two\n lines"), "two lines"),
        (ValueError("odd"), "ValueError: odd"),
        (KeyError(), "KeyError: no message"),
        (Permanent("x" * 900), "x" * 500),
        (Permanent("\ud800"), "?"),
    ],
)
def test_reasons_are_one_bounded_line(error: Exception, text: str) -> None:
    """A dead letter's reason is one line of at most 500 characters, whatever was raised."""
    assert reason(error) == text
