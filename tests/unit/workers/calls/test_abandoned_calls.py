"""Calls under way: when one hangs, and how long an abandoned one is waited for."""

import pytest
from memorybus.errors import LeaseLost
from memorybus.testing import FakeClock
from memorybus_workers.calls.retry import RetryAt
from memorybus_workers.calls.thread_activity import (
    MAX_TIME_LIMITS,
    POLL_SECONDS,
    AbandonedCalls,
    ThreadActivity,
)

LANE = "ns:{p00}:lease:p"


def test_a_call_is_waited_for_until_it_ends(fake_clock):
    """G4: an event may be sent again once its abandoned call has returned."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin("e", LANE)
    abandoned_calls.note(activity)
    assert abandoned_calls.retry_at(LANE, "e") == RetryAt(fake_clock.monotonic() + POLL_SECONDS)
    assert abandoned_calls.has_pending(LANE)
    assert not abandoned_calls.has_pending("another")
    assert abandoned_calls.retry_at(LANE, "another") is None
    activity.end()
    assert abandoned_calls.retry_at(LANE, "e") is None
    assert not abandoned_calls.has_pending(LANE)


def test_every_event_of_a_call_is_waited_for(fake_clock):
    """G4: of a call about several events none is sent again before it has returned."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin_several(["e", "f"], LANE)
    abandoned_calls.note(activity)
    assert abandoned_calls.retry_at(LANE, "f") is not None
    activity.begin("g", LANE)
    assert abandoned_calls.retry_at(LANE, "f") is None
    abandoned_calls.note(activity)
    assert abandoned_calls.retry_at(LANE, "f") is None


@pytest.mark.parametrize("limit", [2.0, 30.0])
def test_a_call_is_not_waited_for_for_ever(fake_clock, limit):
    """G10: the wait is `MAX_TIME_LIMITS` times what the call itself may take, from its begin."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin("e", LANE, *([limit] if limit != 2.0 else []))
    abandoned_calls.note(activity)
    fake_clock.advance(MAX_TIME_LIMITS * limit - 0.1)
    abandoned_calls.note(activity)  # again makes it no younger
    assert abandoned_calls.has_pending(LANE)
    fake_clock.advance(0.2)
    assert not abandoned_calls.has_pending(LANE)


@pytest.mark.parametrize("what", ["idle", "asks", "opens", "harmless"])
def test_what_sends_nothing_is_not_waited_for(fake_clock, what):
    """G6: a question, an opening, a call that may be repeated: nobody waits for these."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin("before", LANE)
    activity.end()
    if what == "opens":
        activity.enter("open")
    elif what != "idle":
        activity.begin("e")
    abandoned_calls.note(activity)
    assert not abandoned_calls.has_pending(LANE)


def test_an_abandoned_thread_begins_no_call(fake_clock):
    """G4: what was not under way when its thread was given up is never sent by it."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.abandoned = True
    with pytest.raises(LeaseLost, match="given up"):
        activity.begin("e", LANE)
    abandoned_calls.note(activity)
    assert not abandoned_calls.has_pending(LANE)
    assert activity.hanging_call(-1.0) == ""


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
