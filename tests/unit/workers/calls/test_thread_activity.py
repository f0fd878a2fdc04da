"""What the watch knows of a provider's threads: which call each is busy with, and since when."""

from memorybus.testing import FakeClock
from memorybus_workers.calls.thread_activity import ThreadActivity


def test_a_call_hangs_after_its_time():
    """Only a call in progress can hang, and only past its time-out (G9)."""
    clock = FakeClock()
    activity = ThreadActivity(clock)
    clock.advance(100)
    assert activity.hanging_call(5.0) == ""
    activity.begin("e1")
    clock.advance(4.9)
    assert activity.hanging_call(5.0) == ""
    clock.advance(0.2)
    assert activity.hanging_call(5.0) == "e1"
    activity.end()
    assert activity.hanging_call(5.0) == ""


def test_a_call_with_a_limit_of_its_own_hangs_after_that():
    """A hook's own limit holds for its call, and not for the next one (G9, G10)."""
    clock = FakeClock()
    activity = ThreadActivity(clock)
    activity.begin("slow", "lane", 120.0)
    clock.advance(119)
    assert activity.hanging_call(5.0) == ""
    assert not activity.abandon(5.0)
    clock.advance(2)
    assert activity.hanging_call(5.0) == "slow"
    activity.end()
    for begin in (activity.begin, activity.enter):
        begin("the next")
        clock.advance(6)
        assert activity.hanging_call(5.0) == "the next"


def test_opening_and_committing_are_watched_too():
    """A call that concerns no event has a deadline like any other (G9)."""
    clock = FakeClock()
    activity = ThreadActivity(clock)
    activity.enter("a transaction's commit")
    clock.advance(6)
    assert activity.hanging_call(5.0) == "a transaction's commit"
    assert not activity.in_hook


def test_a_failure_is_the_events_own_only_inside_its_call():
    """What fails between the calls (opening, committing) is nobody's fault."""
    activity = ThreadActivity(FakeClock())
    assert not activity.end_interrupted()
    activity.begin("e1")
    assert activity.end_interrupted()
    assert not activity.end_interrupted()
    activity.enter("open")
    assert not activity.end_interrupted()
