"""Calls: what the watch knows of a provider's thread."""

import random

from memorybus.testing import FakeClock
from memorybus_workers.calls import Calls


def _calls(clock: FakeClock) -> Calls:
    return Calls(clock, random.Random(1), attempts=2)


def test_a_call_hangs_after_its_time() -> None:
    """Only a call in progress can hang, and only past its time-out (G9)."""
    clock = FakeClock()
    calls = _calls(clock)
    clock.advance(100)
    assert calls.hanging(5.0) == ""
    calls.begin("e1")
    clock.advance(4.9)
    assert calls.hanging(5.0) == ""
    clock.advance(0.2)
    assert calls.hanging(5.0) == "e1"
    calls.end()
    assert calls.hanging(5.0) == ""


def test_a_failure_is_the_events_own_only_inside_its_call() -> None:
    """What fails between the calls (opening, committing) is nobody's fault."""
    calls = _calls(FakeClock())
    assert not calls.interrupted()
    calls.begin("e1")
    assert calls.interrupted()
    assert not calls.interrupted()


def test_an_event_that_always_hangs_is_poison() -> None:
    """An event that hung as often as it may is parked by the next instance (G6)."""
    calls = _calls(FakeClock())
    calls.hung("e1")
    heir = calls.successor()
    assert not heir.is_poison("e1")
    assert not heir.has_poison()
    heir.hung("e1")
    assert heir.is_poison("e1")
    assert not heir.is_poison("e2")
    assert heir.successor().has_poison()
