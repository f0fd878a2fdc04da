"""Calls that were given up: for how long they are waited for."""

import pytest
from memorybus.errors import LeaseLost
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


def test_a_call_is_not_waited_for_for_ever(fake_clock):
    """G10: `MAX_TIME_LIMITS` call time-outs after it began it is waited for no more."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin("e", LANE)
    abandoned_calls.note(activity)
    fake_clock.advance(MAX_TIME_LIMITS * 2.0 - 0.1)
    abandoned_calls.note(activity)  # again makes it no younger
    assert abandoned_calls.has_pending(LANE)
    fake_clock.advance(0.2)
    assert not abandoned_calls.has_pending(LANE)


def test_a_call_that_may_take_long_is_waited_for_as_much_longer(fake_clock):
    """G10: the wait goes by what the call itself might take, which may be more than its waiting."""
    activity, abandoned_calls = ThreadActivity(fake_clock), AbandonedCalls(fake_clock, 2.0)
    activity.begin("e", LANE, 30.0)
    abandoned_calls.note(activity)
    fake_clock.advance(MAX_TIME_LIMITS * 30.0 - 0.1)
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
