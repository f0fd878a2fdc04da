"""The breaker: open while a backend is down, then probed by one call at a time."""

import random

from memorybus_workers.calls.breaker import STRIKES, Breaker


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
