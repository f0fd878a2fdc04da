"""Retry decisions: pure, by tables."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.concurrency.backoff import backoff
from memorybus.errors import Permanent, ProviderHung, Transient, Unavailable
from memorybus_workers.calls.retry import (
    BackendDown,
    ParkKey,
    RetryIn,
    decide_retry,
    describe_failure,
    retry_delay,
)


@pytest.mark.parametrize(
    ("error", "attempt", "decision"),
    [
        (Transient("busy"), 1, RetryIn),
        (Transient("busy"), 4, RetryIn),
        (Transient("busy"), 5, ParkKey),
        (Unavailable("down"), 1, BackendDown),
        (Unavailable("down"), 99, BackendDown),
        (ProviderHung("slow"), 3, BackendDown),
        (Permanent("no"), 1, ParkKey),
        (ValueError("a mistake"), 1, ParkKey),
    ],
)
def test_decision(error, attempt, decision):
    """A backend that is down parks nothing; a refused or worn-out event parks its key (G6)."""
    assert type(decide_retry(error, attempt, 5, random.Random(1))) is decision


@given(st.integers(1, 10_000), st.integers())
def test_waits_are_bounded(failures, seed):
    """No wait is longer than its cap or shorter than half of its step (G10)."""
    assert 0.05 <= retry_delay(failures, random.Random(seed)) <= 30.0
    assert 0.025 <= backoff(failures, random.Random(seed)) <= 5.0


def test_waits_grow():
    """Every failure in a row doubles the wait, up to the cap."""
    waits = [retry_delay(n, random.Random(3)) for n in range(1, 9)]
    assert waits == sorted(waits)
    assert waits[-1] > 50 * waits[0]


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
def test_reasons_are_one_bounded_line(error, text):
    """A dead letter's reason is one line of at most 500 characters, whatever was raised."""
    assert describe_failure(error) == text
