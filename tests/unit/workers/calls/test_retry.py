"""Failures of calls: what is tried again and when, what opens the breaker, what is parked."""

import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.concurrency.backoff import backoff
from memorybus.errors import Permanent, ProviderHung, Transient, Unavailable
from memorybus.testing import FakeClock
from memorybus_workers.calls.breaker import STRIKES, Breaker
from memorybus_workers.calls.failing_events import FailingEvents
from memorybus_workers.calls.retry import (
    BackendDown,
    ParkKey,
    RetryIn,
    decide_retry,
    describe_failure,
    retry_delay,
)
from memorybus_workers.logs import REPEAT_SECONDS, RateLimitedWarning


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


def test_breaker_opens_and_closes():
    """The breaker is open for its wait after a failure, and closed by a success."""
    breaker = Breaker(random.Random(1))
    delay = breaker.note_failure(100.0)
    assert breaker.until == 100.0 + delay
    assert breaker.note_failure(200.0) > delay / 2
    assert breaker.failures == 2
    breaker.note_success()
    assert (breaker.failures, breaker.until) == (0, 0.0)


def test_calls_that_were_under_way_do_not_open_it_further():
    """A burst of failures of calls begun before it opened is one failure of the backend."""
    breaker = Breaker(random.Random(1))
    delay = breaker.note_failure(100.0)
    for _ in range(50):
        breaker.note_failure(100.0)
    assert (breaker.failures, breaker.until) == (1, 100.0 + delay)


def test_a_backend_that_was_down_is_probed_by_one_call_at_a_time():
    """Half open, it lets one call through; its outcome opens or closes it."""
    breaker = Breaker(random.Random(1))
    assert all(breaker.admit(0.0) for _ in range(9))
    breaker.note_failure(100.0)
    assert not breaker.admit(100.0)
    after = breaker.until
    assert [breaker.admit(after), breaker.admit(after)] == [True, False]
    breaker.note_failure(after)
    assert not breaker.admit(after)
    later = breaker.until
    assert breaker.admit(later)
    breaker.note_success()
    assert all(breaker.admit(later) for _ in range(9))


def test_a_probe_that_says_nothing_makes_room_for_another():
    """A probe whose lane was lost does not keep the breaker half open for ever."""
    breaker = Breaker(random.Random(1))
    breaker.note_failure(0.0)
    assert breaker.admit(breaker.until)
    breaker.release_probe()
    assert breaker.admit(breaker.until)


def test_transient_failures_in_a_row_are_the_backends():
    """G6: one bad event opens nothing; when nothing succeeds any more, the backend is down."""
    breaker = Breaker(random.Random(1))
    for _ in range(STRIKES - 1):
        breaker.note_strike(0.0)
    assert breaker.is_closed
    breaker.note_success()
    breaker.note_strike(0.0)
    assert breaker.is_closed
    for _ in range(STRIKES - 1):
        breaker.note_strike(0.0)
    assert not breaker.is_closed


def no_failing_events(clock: FakeClock | None = None, attempts: int = 2) -> FailingEvents:
    """Return what is noted before any event has failed."""
    return FailingEvents(clock or FakeClock(), random.Random(1), attempts)


@pytest.mark.parametrize(
    ("served", "backend_up", "counted"), [(0, True, 1), (1, True, 3), (1, False, 1), (0, False, 1)]
)
def test_failures_count_while_the_backend_serves_others(served, backend_up, counted):
    """G6: nothing is parked because a backend is down: then nothing tells a bad event from it."""
    known = no_failing_events()
    known.note_failure("e1", backend_up=True)
    known.served += served
    known.note_failure("e1", backend_up=backend_up)
    assert known.note_failure("e1", backend_up=backend_up).tries == counted


def test_an_event_that_always_hangs_is_spent():
    """G6: what is known of hangs passes to the next instance; after `attempts` it is parked."""
    known = no_failing_events()
    known.note_hang("e1", backend_up=True)
    heir = known.copy()
    assert not heir.has_hung_too_often("e1")
    heir.served += 1
    heir.note_hang("e1", backend_up=True)
    assert heir.has_hung_too_often("e1")
    assert not heir.has_hung_too_often("e2")
    assert not known.has_hung_too_often("e1")


def test_an_event_that_hung_lets_others_go_first():
    """G6: the wait of an event that hung begins when its lane comes by it again."""
    clock = FakeClock()
    known = no_failing_events(clock)
    known.note_hang("e1", backend_up=True)
    clock.advance(100)
    wait = known.retry_at("e1")
    assert wait is not None
    assert wait.at > clock.monotonic()
    clock.advance(100)
    assert known.retry_at("e1") is None
    assert known.retry_at("e2") is None


def test_what_is_settled_is_forgotten():
    """G10: nothing is kept of events that are applied or parked."""
    known = no_failing_events()
    known.note_failure("e1", backend_up=True)
    assert known.has_any(["e0", "e1"])
    known.settle("e1")
    assert not known.has_any(["e0", "e1"])
    assert known.get("e1") is None


def test_each_reason_is_said_once_a_minute(caplog):
    """G10: who looks each second does not fill the log; another reason is news at once."""
    clock = FakeClock()
    warning = RateLimitedWarning("it waits: %s", clock)
    with caplog.at_level(logging.WARNING, "memorybus"):
        for reason in ("refused", "refused", "no password", "refused"):
            warning.warn(OSError(reason))
            clock.advance(1.0)
        assert caplog.messages == ["it waits: refused", "it waits: no password"]
        clock.advance(REPEAT_SECONDS)
        warning.warn("refused")
    assert caplog.messages[2:] == ["it waits: refused"]
