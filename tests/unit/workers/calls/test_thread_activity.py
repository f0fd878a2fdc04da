"""What the watch knows of a provider's threads: which call each is busy with, and since when."""

from memorybus.testing import FakeClock
from memorybus_workers.calls.thread_activity import Slot


def test_a_call_hangs_after_its_time() -> None:
    """Only a call in progress can hang, and only past its time-out (G9)."""
    clock = FakeClock()
    slot = Slot(clock)
    clock.advance(100)
    assert slot.hanging_call(5.0) == ""
    slot.begin("e1")
    clock.advance(4.9)
    assert slot.hanging_call(5.0) == ""
    clock.advance(0.2)
    assert slot.hanging_call(5.0) == "e1"
    slot.end()
    assert slot.hanging_call(5.0) == ""


def test_a_call_with_a_limit_of_its_own_hangs_after_that() -> None:
    """A hook's own limit holds for its call, and not for the next one (G9, G10)."""
    clock = FakeClock()
    slot = Slot(clock)
    slot.begin("slow", "lane", 120.0)
    clock.advance(119)
    assert slot.hanging_call(5.0) == ""
    assert not slot.abandon(5.0)
    clock.advance(2)
    assert slot.hanging_call(5.0) == "slow"
    slot.end()
    for begin in (slot.begin, slot.enter):
        begin("the next")
        clock.advance(6)
        assert slot.hanging_call(5.0) == "the next"


def test_opening_and_committing_are_watched_too() -> None:
    """A call that concerns no event has a deadline like any other (G9)."""
    clock = FakeClock()
    slot = Slot(clock)
    slot.enter("a transaction's commit")
    clock.advance(6)
    assert slot.hanging_call(5.0) == "a transaction's commit"
    assert not slot.in_hook


def test_a_failure_is_the_events_own_only_inside_its_call() -> None:
    """What fails between the calls (opening, committing) is nobody's fault."""
    slot = Slot(FakeClock())
    assert not slot.end_interrupted()
    slot.begin("e1")
    assert slot.end_interrupted()
    assert not slot.end_interrupted()
    slot.enter("open")
    assert not slot.end_interrupted()
