"""What is remembered of failing events: how often each failed, and when it is tried again."""

import random

import pytest
from memorybus.testing import FakeClock
from memorybus_workers.calls.failing_events import FailingEvents


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
